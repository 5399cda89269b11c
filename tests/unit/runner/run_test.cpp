// Containers of the host's own /usr, by the real runtime.
#include "runner/local/run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"
#include "tests/unit/runner/host_tree.hpp"

namespace mlenv {
namespace {

class RunTest : public testing::Test {
 protected:
  RunTest() : folder_(temporary_root()) {
    test::fill_host_tree(folder_.path() / "tree");
    make_folders(folder_.path() / "project");
    make_folders(folder_.path() / "scratch");
  }
  void SetUp() override {
    if (!find_program("runc")) GTEST_SKIP() << "`runc` is not installed";
    if (!fs::is_symlink("/bin")) GTEST_SKIP() << "this machine's /bin is not in /usr";
    try {
      (void)shell("true");
    } catch (const Error& error) {
      if (error.code() == "no-namespace" || error.code() == "no-overlay")
        GTEST_SKIP() << error.what();
      throw;
    }
  }
  LocalRun run(const std::string& script) {
    LocalRun made =
        test::host_run(folder_.path() / "tree", scratch_.emplace_back(folder_.path()).path());
    made.project = folder_.path() / "project";
    made.argv = {"/bin/sh", "-c", script};
    return made;
  }
  Exit shell(const std::string& script) { return run_local(run(script)).exit; }
  /// What the script wrote to `out` in the project.
  std::string answer(const LocalRun& local) {
    EXPECT_EQ(run_local(local).exit.code, 0);
    return read_file(folder_.path() / "project/out");
  }
  TemporaryFolder folder_;
  std::vector<TemporaryFolder> scratch_;
};

TEST_F(RunTest, GivesTheJobsStatus) {
  EXPECT_EQ(shell("exit 0"), (Exit{0, false}));
  EXPECT_EQ(shell("exit 42"), (Exit{42, false}));
  EXPECT_EQ(shell("kill -KILL $$"), (Exit{137, true}));
  EXPECT_EQ(shell("kill -TERM $$"), (Exit{143, true}));  // it is not process 1
}

TEST_F(RunTest, SaysWhatIsNoRuntime) {
  const auto complaint = [&](const std::string& runtime) {
    LocalRun local = run("true");
    local.runtime = runtime;
    try {
      (void)run_local(local);
    } catch (const Error& error) {
      return error.code() + ": " + error.frames().back();
    }
    return std::string("none");
  };
  EXPECT_EQ(complaint("/bin/true"), "run-failed: it ended with status 0");
  EXPECT_EQ(complaint("/bin/false"), "run-failed: it ended with status 1");
  EXPECT_EQ(complaint("/nowhere/runc"), "no-runtime: No such file or directory");
  EXPECT_EQ(complaint("/etc/passwd"), "no-runtime: Permission denied");
}

TEST_F(RunTest, ProgramsThatAreNotThere) {
  LocalRun local = run("");
  local.argv = {"no-such-program"};
  EXPECT_EQ(run_local(local).exit.code, 127);
  local = run("");
  local.argv = {"/etc/passwd"};
  EXPECT_EQ(run_local(local).exit.code, 126);
}

TEST_F(RunTest, TheProjectIsTheCallers) {
  EXPECT_EQ(answer(run("pwd >out")), "/workspace\n");
  struct stat status {};
  ASSERT_EQ(::stat((folder_.path() / "project/out").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, ::geteuid());
  EXPECT_EQ(status.st_gid, ::getegid());
}

TEST_F(RunTest, TheImageStaysAsItIs) {
  EXPECT_EQ(shell("echo x >/etc/passwd && rm /etc/group && echo y >/new").code, 0);
  EXPECT_FALSE(fs::exists(folder_.path() / "tree/new"));
  EXPECT_TRUE(fs::exists(folder_.path() / "tree/etc/group"));
  EXPECT_NE(read_file(folder_.path() / "tree/etc/passwd"), "x\n");
}

TEST_F(RunTest, ReadOnlyMounts) {
  LocalRun local = run("echo x >/data/file; echo $? >out");
  make_folders(folder_.path() / "data");
  local.mounts.push_back({folder_.path() / "data", "/data", true});
  EXPECT_NE(answer(local), "0\n");
  EXPECT_TRUE(fs::is_empty(folder_.path() / "data"));
}

/// Devices that any machine has, by what any user may do.
CdiEdits some_devices() {
  CdiEdits edits;
  CdiNode zero;
  zero.path = "/dev/vendor/zero";
  zero.host_path = "/dev/zero";
  edits.nodes = {zero};
  edits.mounts = {{"/etc/hostname", "/etc/vendor/name", "", {"ro", "nosuid", "nodev", "bind"}},
                  {"tmpfs", "/vendor", "tmpfs", {"size=64k"}}};
  edits.env = {"VENDOR=1"};
  edits.library_folders = {"/vendor/lib"};
  return edits;
}

TEST_F(RunTest, DevicesAndWhatBelongsToThem) {
  LocalRun local = run(
      "{ head -c 2 /dev/vendor/zero | od -An -tx1; stat -c %t:%T /dev/vendor/zero; "
      "cmp /etc/vendor/name /etc/hostname && echo same; grep -c '^tmpfs /vendor ' /proc/mounts; "
      "echo x 2>/dev/null >>/etc/vendor/name || echo read-only; echo $VENDOR $LD_LIBRARY_PATH; "
      "} >out");
  local.devices = some_devices();
  local.mounts.push_back({"/etc/hostname", "/etc/hostname", true});
  local.env = {"LD_LIBRARY_PATH=/mine"};
  EXPECT_EQ(answer(local), " 00 00\n1:5\nsame\n1\nread-only\n1 /mine:/vendor/lib\n");
}

TEST_F(RunTest, HooksSeeTheContainer) {
  // As NVIDIA's hooks do it: the bundle's path comes with the state, config.json has the root.
  write_file(
      folder_.path() / "hook",
      "#!/bin/sh\nbundle=$(sed 's/.*\"bundle\":\"\\([^\"]*\\)\".*/\\1/')\n"
      "root=$(sed 's/.*\"root\":{\"path\":\"\\([^\"]*\\)\".*/\\1/' \"$bundle/config.json\")\n"
      "echo \"$1 $HOOK\" >\"$root/etc/from-hook\"\n");
  fs::permissions(folder_.path() / "hook", fs::perms::owner_all);
  LocalRun local = run("cat /etc/from-hook >out");
  const std::string hook = (folder_.path() / "hook").string();
  local.devices.hooks = {{"createContainer", hook, {hook, "argument"}, {"HOOK=h", "PATH=/bin"}, 5}};
  EXPECT_EQ(answer(local), "argument h\n");
  EXPECT_FALSE(fs::exists(folder_.path() / "tree/etc/from-hook"));
}

TEST_F(RunTest, ADeviceThatIsNone) {
  LocalRun local = run("true");
  local.devices.nodes.resize(1);
  local.devices.nodes[0].path = "/etc/hostname";
  EXPECT_EQ(code_of([&] { (void)run_local(local); }), "stale-cdi");
}

TEST_F(RunTest, IsolatedButForTheNetwork) {
  const std::string link = "readlink /proc/self/ns/";
  std::string namespaces = answer(run("for n in mnt pid ipc uts; do " + link + "$n; done >out"));
  for (const char* name : {"mnt", "pid", "ipc", "uts"}) {
    const std::string ours = fs::read_symlink(std::string("/proc/self/ns/") + name).string();
    EXPECT_EQ(namespaces.find(ours), std::string::npos) << name;
  }
  EXPECT_EQ(answer(run(link + "net >out")), fs::read_symlink("/proc/self/ns/net").string() + "\n");
  EXPECT_EQ(answer(run("grep -E 'NoNewPrivs|Seccomp:' /proc/self/status | tr -d '\\t\\n' >out")),
            "NoNewPrivs:1Seccomp:2");
}

TEST_F(RunTest, EveryLayerAndBothMethods) {
  for (const OverlayMethod method : {OverlayMethod::append, OverlayMethod::short_names}) {
    LocalRun local = run("ls /layers | wc -l >out");
    for (int i = 0; i < 60; ++i) {
      const fs::path tree = folder_.path() / "many" / std::to_string(i);
      make_folders(tree / "layers");
      write_file(tree / "layers" / std::to_string(i), "", false);
      local.trees.push_back(tree);
    }
    local.overlay = method;
    EXPECT_EQ(answer(local), "60\n");
  }
}

TEST_F(RunTest, NothingOutlivesTheJob) {
  // The orphan holds the pipe open for as long as it lives.
  Pipe pipe = make_pipe();
  const int saved = ::fcntl(1, F_DUPFD_CLOEXEC, 0);
  ASSERT_GE(::dup2(pipe.write_end.get(), 1), 0);
  pipe.write_end.reset();
  const Exit exit = shell("sleep 600 & echo started");
  ::dup2(saved, 1);
  ::close(saved);
  EXPECT_EQ(exit.code, 0);
  FdSource source{pipe.read_end.get()};
  EXPECT_EQ(read_all(source, 100), "started\n");
}

TEST_F(RunTest, SignalsReachTheJob) {
  const fs::path fifo = folder_.path() / "project/ready";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Fd ready = open_file(fifo, O_RDWR);
  const pid_t self = ::getpid();
  std::thread sender([&] {
    pollfd job{ready.get(), POLLIN, 0};
    constexpr int kDeadlineMs = 30'000;
    EXPECT_EQ(::poll(&job, 1, kDeadlineMs), 1);
    ::kill(self, SIGUSR1);
  });
  // With a thread beside it, run_local starts this program again (`__run`).
  const Exit exit = shell("trap 'exit 9' USR1; sleep 60 & echo >ready; wait");
  sender.join();
  EXPECT_EQ(exit, (Exit{9, false}));
}

TEST_F(RunTest, ErrorsOfItsOwn) {
  LocalRun local = run("true");
  local.runtime = "no-such-runtime";
  try {
    run_local(local);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no-runtime");
  }
  local = run("true");
  local.trees.emplace_back("/no/such/tree");
  try {
    run_local(local);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no-overlay");
  }
}

}  // namespace
}  // namespace mlenv
