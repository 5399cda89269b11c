#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runner/local/run.hpp"

namespace mlenv {
namespace {

std::string mount_refusal(std::string_view text) {
  try {
    (void)Mount::parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::usage);
    return error.code();
  }
  return "accepted";
}

TEST(Mount, SourceTargetAndMode) {
  const Mount mount = Mount::parse("/usr:/data");
  EXPECT_EQ(mount.source, "/usr");
  EXPECT_EQ(mount.target, "/data");
  EXPECT_FALSE(mount.read_only);
  EXPECT_TRUE(Mount::parse("/usr:/data:ro").read_only);
  EXPECT_FALSE(Mount::parse("/usr:/data:rw").read_only);
}

TEST(Mount, TargetIsNormalised) { EXPECT_EQ(Mount::parse("/usr:/a//b/../c/").target, "/a/c"); }

TEST(Mount, RelativeSourceIsOfTheCurrentFolder) {
  EXPECT_EQ(Mount::parse(".:/data").source.lexically_normal(),
            (fs::current_path() / "").lexically_normal());
}

TEST(Mount, LeavesTheContainersOwnFoldersAlone) {
  for (const char* target : {"/proc", "/proc/cpuinfo", "/sys", "/dev", "/dev/", "/tmp/../proc"}) {
    EXPECT_EQ(mount_refusal(std::string("/usr:") + target), "bad-mount") << target;
  }
  for (const char* target : {"/dev/shm", "/sys/fs/cgroup", "/process", "/tmp"}) {
    EXPECT_EQ(mount_refusal(std::string("/usr:") + target), "accepted") << target;
  }
}

TEST(Mount, RefusesWhatIsNone) {
  for (const char* text : {"", "/usr", "/usr:", ":/data", "/usr:data", "/usr:/data:rx", "/usr:/",
                           "/usr:/a/..", "/nowhere/at/all:/data"}) {
    EXPECT_EQ(mount_refusal(text), "bad-mount") << text;
  }
}

}  // namespace
}  // namespace mlenv
