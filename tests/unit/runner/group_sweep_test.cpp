#include "runner/local/group_sweep.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <array>
#include <ctime>

#include <gtest/gtest.h>

namespace mlenv {
namespace {

/// Ordinary folders: one with a file in it cannot be removed, as a group with a process in it.
class GroupSweep : public testing::Test {
 protected:
  fs::path make(const fs::path& name, std::time_t age) {
    fs::path path = folder_.path() / name;
    make_folders(path);
    set_age(path, age);
    return path;
  }
  static void set_age(const fs::path& path, std::time_t age) {
    const std::time_t then = std::time(nullptr) - age;
    const std::array<timespec, 2> times{timespec{then, 0}, timespec{then, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
  }
  void sweep() const { sweep_groups({folder_.path(), "/nowhere"}, std::chrono::seconds{100}); }

  TemporaryFolder folder_{temporary_root()};
};

TEST_F(GroupSweep, TakesAwayOldEmptyOnesOfRuns) {
  const fs::path run = make("mlenv-0123456789abcdef", 200);
  const fs::path limits = make("mlenv-limits-01234567", 200);
  const fs::path inner = make("mlenv-limits-01234567/mlenv-0123456789abcdef", 200);
  set_age(limits, 200);
  sweep();
  EXPECT_FALSE(fs::exists(run));
  EXPECT_FALSE(fs::exists(inner));
  EXPECT_FALSE(fs::exists(limits));
}

TEST_F(GroupSweep, LeavesWhatIsNewOrUsedOrSomebodyElses) {
  const fs::path young = make("mlenv-0123456789abcdef", 10);
  const fs::path used = make("mlenv-1123456789abcdef", 200);
  write_file(used / "process", "", false);
  set_age(used, 200);
  const std::vector<fs::path> others = {make("mlenv-box", 200), make("mlenv-limits-1", 200),
                                        make("docker-0123456789abcdef", 200)};
  sweep();
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(used));
  for (const fs::path& one : others) EXPECT_TRUE(fs::exists(one)) << one;
}

}  // namespace
}  // namespace mlenv
