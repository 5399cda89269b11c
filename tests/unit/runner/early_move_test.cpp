#include "runner/local/early_move.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <cerrno>

namespace mlenv {
namespace {

TEST(EarlyMove, IsIntoTheGroupThatWeAreIn) {
  const FactSources here = host_sources("/", "/tmp");
  const fs::path file = own_procs_file(here);
  if (file.empty()) {
    EXPECT_TRUE(mounts(here)) << "where groups are mounted, one is ours";
    return;
  }
  EXPECT_EQ(file.filename(), "cgroup.procs");
  EXPECT_TRUE(fs::exists(file)) << file;
  const std::string pid = std::to_string(::getpid()) + "\n";
  EXPECT_NE(("\n" + read_file(file)).find("\n" + pid), std::string::npos) << file;
}

TEST(EarlyMove, SaysNoFileWhereNoGroupsAreMounted) {
  const TemporaryFolder root{temporary_root(), "no-groups-"};
  make_folders(root.path() / "proc/self");
  write_file(root.path() / "proc/self/mountinfo", "", false);
  write_file(root.path() / "proc/self/cgroup", "", false);
  FactSources from = host_sources("/", "/tmp");
  from.root = root.path();
  EXPECT_EQ(own_procs_file(from), "");
}

TEST(EarlyMove, LeavesNobodyToWaitFor) {
  const std::string before = read_file("/proc/self/cgroup");
  move_groups_early();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  EXPECT_EQ(read_file("/proc/self/cgroup"), before);
}

}  // namespace
}  // namespace mlenv
