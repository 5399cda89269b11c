#pragma once
// A file system small enough for a test: links into `/usr`, on which the host's is mounted.
#include "runner/local/run.hpp"

namespace mlenv::test {

inline void fill_host_tree(const fs::path& tree) {
  for (const char* folder : {"usr", "etc", "proc", "sys", "dev", "tmp", "run", "root"}) {
    make_folders(tree / folder);
  }
  for (const char* name : {"bin", "sbin", "lib", "lib64"}) {
    fs::create_directory_symlink(fs::path("usr") / name, tree / name);
  }
  write_file(tree / "etc/passwd", "root:x:0:0:root:/root:/bin/sh\nwww:x:33:34::/srv:/bin/sh\n",
             false);
  write_file(tree / "etc/group", "root:x:0:\nwww:x:34:\nvideo:x:44:www\n", false);
}

/// A run of that tree; fields may be changed.
inline LocalRun host_run(const fs::path& tree, const fs::path& scratch) {
  LocalRun run;
  run.trees = {tree};
  run.mounts = {{"/usr", "/usr", true}};
  run.scratch = scratch;
  return run;
}

}  // namespace mlenv::test
