#pragma once
// Runs an image here: overlayfs over the unpacked layers with a throwaway writable layer, the
// container by runc (crun where it works), as root or rootless. Defaults: docs/run.md.
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/process.hpp"
#include "images/oci.hpp"

namespace mlenv {

struct Mount {
  fs::path source;      ///< on the host, absolute
  std::string target;   ///< in the container, absolute
  bool read_only = false;
  /// `SRC:DST[:ro]`; a relative SRC is relative to the current folder. Throws `bad-mount` (usage)
  /// when it is malformed or SRC does not exist.
  static Mount parse(std::string_view text);
};

struct LocalRun {
  ImageConfig config;               ///< of the image
  std::vector<fs::path> trees;      ///< unpacked layers, the bottom one first
  std::vector<Mount> mounts;        ///< besides the defaults
  std::vector<std::string> env;     ///< `K=V`, over the image's; `K` alone takes the caller's value
  std::string workdir;              ///< empty: the image's
  std::vector<std::string> argv;    ///< empty: the image's entrypoint and command
  std::optional<fs::path> project;  ///< mounted at the image's workdir; nullopt: nothing
  fs::path scratch;                 ///< folder on a file system that overlayfs accepts as upper
  bool terminal = false;            ///< give it a terminal (ours)
};

/// Runs to the end with our stdin, stdout, stderr and terminal; signals sent to us reach it. The
/// command's status: 126 found but not executable, 127 not found, 128+n after a signal. Throws for
/// what is not the job's doing (`no-runtime`, `no-overlay`, `no-namespace`), which the CLI turns into
/// 125.
Exit run_local(const LocalRun& run);

/// The second half of its re-exec; see sandbox_main.
std::optional<int> run_main(int argc, char** argv);

}  // namespace mlenv
