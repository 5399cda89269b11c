#include "runner/local/limit_place.hpp"

#include <set>

#include <gtest/gtest.h>

#include "runner/local/limits.hpp"
#include "runner/local/network.hpp"
#include "runner/local/rdma.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

/// Files of a machine as cgroups(7) shows them, written down from one of each sort.
class LimitedMachine {
 public:
  void file(const std::string& path, const std::string& text) {
    make_folders((root_.path() / path).parent_path());
    write_file(root_.path() / path, text, false);
  }
  void group(const std::string& path, const std::string& handed, const std::string& processes,
             bool own) {
    const std::string folder = "sys/fs/cgroup" + path;
    file(folder + "/cgroup.controllers", "cpuset cpu memory pids\n");
    file(folder + "/cgroup.subtree_control", handed + "\n");
    file(folder + "/cgroup.procs", processes);
    if (!path.empty()) file(folder + "/cgroup.type", "domain\n");
    if (!own) return;
    for (const char* name : {"", "/cgroup.procs", "/cgroup.subtree_control"}) {
      writable_.insert("/" + folder + name);
    }
  }
  void unified(const std::string& own) {
    file("proc/self/cgroup", "0::" + own + "\n");
    file("proc/self/mountinfo",
         "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void user_systemd() { file("run/user/1000/systemd/private", ""); }
  void may_write(const std::string& path) { writable_.insert(path); }

  std::variant<LimitPlace, NoLimitPlace> find(const JobLimits& limits, bool root = false) const {
    FactSources from = host_sources("/", "/tmp");
    from.root = root_.path();
    from.find = [](std::string_view name) { return std::optional(fs::path("/usr/bin") / name); };
    LimitRights rights;
    rights.may_write = [this](const fs::path& path) { return writable_.contains(path.string()); };
    rights.root = root;
    rights.pid = 77;
    rights.runtime_folder = "/run/user/1000";
    return find_limit_place(from, rights, limits);
  }

 private:
  TemporaryFolder root_{fs::temp_directory_path()};
  std::set<std::string> writable_;
};

JobLimits memory() {
  JobLimits limits;
  limits.memory_bytes = 1U << 30U;
  return limits;
}

const LimitPlace* place(const std::variant<LimitPlace, NoLimitPlace>& found) {
  return std::get_if<LimitPlace>(&found);
}

TEST(LimitPlace, Version1TakesTheGroupOfEachController) {
  LimitedMachine machine;
  machine.file("proc/self/cgroup", "3:memory:/slurm/job\n2:cpu,cpuacct:/\n0::/\n");
  machine.file("proc/self/mountinfo",
               "31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
               "32 20 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
               "33 20 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  machine.file("sys/fs/cgroup/memory/slurm/job/tasks", "");
  machine.file("sys/fs/cgroup/cpu/tasks", "");
  JobLimits limits = memory();
  limits.cpus = 1;
  const auto refused = machine.find(limits);
  ASSERT_FALSE(place(refused));
  EXPECT_NE(std::get<NoLimitPlace>(refused).why.find("version 1"), std::string::npos);
  EXPECT_TRUE(std::get<NoLimitPlace>(refused).scope.empty());
  machine.may_write("/sys/fs/cgroup/memory/slurm/job");
  machine.may_write("/sys/fs/cgroup/cpu");
  const auto found = machine.find(limits, true);
  ASSERT_TRUE(place(found));
  EXPECT_EQ(place(found)->controllers[0].parent, "/sys/fs/cgroup/memory/slurm/job");
  EXPECT_EQ(place(found)->controllers[1].parent, "/sys/fs/cgroup/cpu");
  EXPECT_FALSE(place(found)->controllers[0].unified);
}

TEST(LimitPlace, Version2TakesTheNearestFolderThatHandsDown) {
  LimitedMachine machine;
  machine.unified("/user.slice/app.slice/shell.scope");
  machine.group("", "cpu memory pids", "", false);
  machine.group("/user.slice", "memory pids", "", false);
  machine.group("/user.slice/app.slice", "memory pids", "", true);
  machine.group("/user.slice/app.slice/shell.scope", "", "12\n77\n", true);
  const auto found = machine.find(memory());
  ASSERT_TRUE(place(found));
  EXPECT_EQ(place(found)->controllers[0].parent, "/sys/fs/cgroup/user.slice/app.slice");
  EXPECT_EQ(place(found)->controllers[0].own, "/sys/fs/cgroup/user.slice/app.slice/shell.scope");
  EXPECT_FALSE(place(found)->step_aside);
  // A limit of the folder that we are in would not hold for the job.
  machine.file("sys/fs/cgroup/user.slice/app.slice/shell.scope/memory.max", "1000000\n");
  EXPECT_FALSE(place(machine.find(memory())));
}

TEST(LimitPlace, AloneInItWeStepAside) {
  LimitedMachine machine;
  machine.unified("/own.scope");
  machine.group("", "cpu memory pids", "", false);
  machine.group("/own.scope", "", "77\n", true);
  const auto found = machine.find(memory());
  ASSERT_TRUE(place(found));
  EXPECT_TRUE(place(found)->step_aside);
  EXPECT_EQ(place(found)->controllers[0].parent, "/sys/fs/cgroup/own.scope");
}

TEST(LimitPlace, TheFirstFolderTakesProcessesAndGroups) {
  LimitedMachine machine;
  machine.unified("/");
  machine.group("", "", "1\n77\n", true);
  const auto found = machine.find(memory(), true);
  ASSERT_TRUE(place(found));
  EXPECT_FALSE(place(found)->step_aside);
}

TEST(LimitPlace, SystemdIsAskedWhereItIs) {
  LimitedMachine machine;
  machine.unified("/user.slice/session-1.scope");
  machine.group("", "cpu memory pids", "", false);
  machine.group("/user.slice/session-1.scope", "", "1\n77\n", false);
  const auto alone = machine.find(memory());
  ASSERT_FALSE(place(alone));
  EXPECT_TRUE(std::get<NoLimitPlace>(alone).scope.empty());
  EXPECT_FALSE(std::get<NoLimitPlace>(alone).hint.empty());
  machine.user_systemd();
  const auto found = machine.find(memory());
  ASSERT_FALSE(place(found));
  const std::vector<std::string>& scope = std::get<NoLimitPlace>(found).scope;
  ASSERT_FALSE(scope.empty());
  EXPECT_EQ(scope.front(), "systemd-run");
  EXPECT_EQ(scope.back(), "--");
}

TEST(LimitPlace, AControllerThatIsNotThereIsToldOf) {
  LimitedMachine machine;
  machine.unified("/");
  machine.group("", "", "77\n", true);
  machine.file("sys/fs/cgroup/cgroup.controllers", "cpu pids\n");
  const auto found = machine.find(memory(), true);
  ASSERT_FALSE(place(found));
  EXPECT_NE(std::get<NoLimitPlace>(found).why.find("`memory`"), std::string::npos);
}

TEST(Limits, KillsAreCountedInBothVersions) {
  const TemporaryFolder folder{fs::temp_directory_path()};
  EXPECT_EQ(memory_kills(folder.path()), 0U);
  write_file(folder.path() / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
             false);
  EXPECT_EQ(memory_kills(folder.path()), 2U);
  write_file(folder.path() / "memory.events", "low 0\nmax 7\noom 1\noom_kill 1\n", false);
  EXPECT_EQ(memory_kills(folder.path()), 1U);
}

TEST(Network, NameServersOfTheLoopbackAreAskedThroughTheProgram) {
  EXPECT_EQ(private_resolver("nameserver 10.0.0.1\nsearch a\n", true),
            "nameserver 10.0.0.1\nsearch a\n");
  EXPECT_EQ(private_resolver("nameserver 127.0.0.53\noptions edns0\n", true),
            "nameserver 169.254.53.53\noptions edns0\n");
  EXPECT_EQ(private_resolver("nameserver 127.0.0.53\n", false), "nameserver 10.0.2.3\n");
  EXPECT_EQ(private_resolver("search a\n", false), "search a\nnameserver 10.0.2.3\n");
}

TEST(Rdma, DevicesAndMemoryToLock) {
  const TemporaryFolder root{fs::temp_directory_path()};
  JobOptions options;
  CdiEdits edits;
  EXPECT_EQ(code_of([&] { add_rdma(options, edits, root.path()); }), "no-rdma");
  for (const char* name : {"uverbs0", "rdma_cm", "issm0"}) {
    make_folders(root.path() / "dev/infiniband");
    write_file(root.path() / "dev/infiniband" / name, "", false);
  }
  add_rdma(options, edits, root.path());
  ASSERT_EQ(edits.nodes.size(), 2U);
  EXPECT_EQ(edits.nodes[0].path, "/dev/infiniband/rdma_cm");
  EXPECT_EQ(edits.nodes[1].path, "/dev/infiniband/uverbs0");
  ASSERT_EQ(options.ulimits.size(), 1U);
  EXPECT_EQ(options.ulimits[0].name, "memlock");
  options.ulimits = {{"memlock", 5, 5}};
  add_rdma(options, edits, root.path());
  EXPECT_EQ(options.ulimits.size(), 1U);
}

}  // namespace
}  // namespace mlenv
