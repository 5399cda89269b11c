#include "runner/local/own_groups.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace mlenv {
namespace {

/// A machine's files, and a crun that answers.
class OwnGroups : public ::testing::Test {
 protected:
  OwnGroups() {
    from_ = host_sources("/", "/tmp");
    from_.root = root_.path();
    from_.find = [](std::string_view name) { return std::optional(fs::path("/usr/bin") / name); };
    from_.ask = [this](const std::vector<std::string>&) { return known(answer_, "crun"); };
  }
  void mount(const std::string& type, const std::string& point, const std::string& options) {
    mounted_ += fmt::format("30 20 0:26 / {} rw,nosuid - {} {} {}\n", point, type, type, options);
    write("proc/self/mountinfo", mounted_);
  }
  void write(const std::string& path, const std::string& text) {
    make_folders((root_.path() / path).parent_path());
    write_file(root_.path() / path, text, false);
  }
  void folder(const std::string& path) { make_folders(root_.path() / path); }
  /// Version 1 with a job of Slurm's, and version 2 beside it.
  void hybrid() {
    mount("tmpfs", "/sys/fs/cgroup", "rw");
    mount("cgroup", "/sys/fs/cgroup/memory", "rw,memory");
    mount("cgroup", "/sys/fs/cgroup/cpu,cpuacct", "rw,cpu,cpuacct");
    mount("cgroup", "/sys/fs/cgroup/systemd", "rw,name=systemd");
    mount("cgroup2", "/sys/fs/cgroup/unified", "rw");
    write("proc/self/cgroup",
          "4:memory:/slurm/job_7\n3:cpu,cpuacct:/\n2:name=systemd:/system.slice\n0::/init\n");
    folder("sys/fs/cgroup/memory/slurm/job_7");
    folder("sys/fs/cgroup/systemd/system.slice");
    folder("sys/fs/cgroup/unified/init");
    folder("sys/fs/cgroup/cpu,cpuacct");
  }
  void unified(const std::string& own) {
    mount("cgroup2", "/sys/fs/cgroup", "rw,nsdelegate");
    write("proc/self/cgroup", "0::" + own + "\n");
    folder("sys/fs/cgroup" + own);
  }
  std::string quick(bool root, const JobLimits& limits = {}) {
    return quick_runtime(from_, root, limits);
  }

  TemporaryFolder root_{temporary_root(), "groups-"};
  FactSources from_;
  std::string mounted_;
  std::string answer_ = "crun version 1.8.1\ncommit: f8a096be\n";
};

TEST_F(OwnGroups, AreOneWhereAHierarchyIsMountedTwiceAtAPlace) {
  hybrid();
  const std::vector<OwnGroup> once = own_groups(from_);
  mount("cgroup", "/sys/fs/cgroup/memory", "rw,memory");
  EXPECT_EQ(own_groups(from_), once);
}

TEST_F(OwnGroups, AreThoseOfVersion1ThatAreNotTheFirst) {
  hybrid();
  const std::vector<OwnGroup> expected = {
      {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/slurm/job_7"},
      {"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/systemd/system.slice"}};
  EXPECT_EQ(own_groups(from_), expected);
  EXPECT_EQ(own_unified_path(from_), "");
}

TEST_F(OwnGroups, OfVersion2AreAPath) {
  unified("/system.slice/slurmstepd.scope/job_7");
  EXPECT_TRUE(own_groups(from_).empty());
  EXPECT_EQ(own_unified_path(from_), "/system.slice/slurmstepd.scope/job_7/");
}

TEST_F(OwnGroups, OfVersion2MayBeTheFirst) {
  unified("/");
  EXPECT_EQ(own_unified_path(from_), "/");
}

TEST_F(OwnGroups, UnknownOnesAreNone) {
  EXPECT_TRUE(own_groups(from_).empty());
  EXPECT_EQ(own_unified_path(from_), "");
}

TEST_F(OwnGroups, CrunIsTheQuickRuntimeOfOrdinaryUsers) {
  unified("/user.slice");
  JobLimits limits;
  limits.pids = 7;
  EXPECT_EQ(quick(false), "/usr/bin/crun");
  EXPECT_EQ(quick(false, limits), "/usr/bin/crun");
  EXPECT_EQ(quick(true), "");
}

TEST_F(OwnGroups, CrunIsRootsOnlyWhereGroupsAreOfVersion1) {
  hybrid();
  JobLimits limits;
  limits.pids = 7;
  EXPECT_EQ(quick(true), "/usr/bin/crun");
  EXPECT_EQ(quick(true, limits), "");
}

TEST_F(OwnGroups, AnOldOrAbsentCrunIsLeftAlone) {
  unified("/");
  answer_ = "crun version 0.17\n";
  EXPECT_EQ(quick(false), "");
  answer_ = "crun version 1.21\n";
  EXPECT_EQ(quick(false), "/usr/bin/crun");
  answer_ = "what?\n";
  EXPECT_EQ(quick(false), "");
  from_.find = [](std::string_view) { return std::optional<fs::path>{}; };
  EXPECT_EQ(quick(false), "");
}

}  // namespace
}  // namespace mlenv
