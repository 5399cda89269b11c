#include "base/host_path.hpp"

#include <gtest/gtest.h>

#include "base/files_beneath.hpp"

namespace mlenv {
namespace {

TEST(HostPath, FoldersThatARunMayWriteToAreLeftOut) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path project = fs::canonical(folder.path()) / "p";
  make_folders(project / ".venv/bin");
  fs::create_directory_symlink(project / ".venv", folder.path() / "venv");
  const auto of = [&](const std::string& list) { return host_folders(list, project); };
  const std::string p = project.string();
  EXPECT_EQ(of("/usr/bin:/opt/x:/bin"), "/usr/bin:/opt/x:/bin");
  EXPECT_EQ(of(".:/usr/bin"), "/usr/bin");
  EXPECT_EQ(of(":/usr/bin:"), "/usr/bin");
  EXPECT_EQ(of("bin:./x:../y:/usr/bin"), "/usr/bin");
  EXPECT_EQ(of(p + "/.venv/bin:/usr/bin"), "/usr/bin");
  EXPECT_EQ(of(p + ":" + p + "/:/usr/bin"), "/usr/bin");
  EXPECT_EQ(of("/opt/.." + p + "/x:/usr/bin"), "/usr/bin");
  EXPECT_EQ(of(folder.path().string() + "/venv/bin:/usr/bin"), "/usr/bin");
  EXPECT_EQ(of(p + "-other/bin"), p + "-other/bin");
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(host_folders("/usr/local/bin:/usr/local/x", "/usr/local"), "/usr/local/bin");
  EXPECT_EQ(host_folders(p + ":.:/a", {}), p + ":/a");
}

TEST(FilesBeneath, LinksPipesAndWaysOutAreNotFollowed) {
  const TemporaryFolder folder{temporary_root()};
  make_folders(folder.path() / "in/deep");
  write_file(folder.path() / "in/deep/file", "text");
  write_file(folder.path() / "out", "secret");
  fs::create_symlink(folder.path() / "out", folder.path() / "in/link");
  fs::create_directory_symlink("deep", folder.path() / "in/way");
  ASSERT_EQ(::mkfifo((folder.path() / "in/pipe").c_str(), 0600), 0);
  const Fd in = open_folder(folder.path() / "in");
  const auto read = [&](const char* path) { return read_file_beneath(in.get(), path, 100); };
  EXPECT_EQ(read("deep/file"), "text");
  for (const char* path : {"link", "way/file", "pipe", "../out", "deep", "absent", "/etc/passwd"}) {
    EXPECT_EQ(read(path), std::nullopt) << path;
  }
}

}  // namespace
}  // namespace mlenv
