#include "base/sandbox/sandbox.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"
#include "base/sandbox/plan.hpp"
#include "tests/support/deep_tree.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

using namespace std::chrono_literals;

/// A root that is empty but for this machine's own programs, which are mounted into it.
class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"bin", "lib", "lib64"}) {
      fs::create_symlink(std::string("usr/") + name, folder_.path() / name);
    }
    fs::create_directory(folder_.path() / "etc");
    fs::create_directory(folder_.path() / "work");
    try {
      Sandbox{shell("exit 0")}.wait();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();  // a container that lets nobody mount
    }
  }

  SandboxCommand shell(std::string script) const {
    SandboxCommand command;
    command.root = folder_.path();
    command.argv = {"/bin/sh", "-c", std::move(script)};
    command.env = {"PATH=/usr/sbin:/usr/bin:/bin", "LC_ALL=C"};
    command.mounts = {{"/usr", "/usr", true}};
    return command;
  }
  RecordedRun recorded(std::string script, const Owners& initial = {}) const {
    return run_recorded(shell(std::move(script)), initial, 30s);
  }
  fs::path path(const char* name) const { return folder_.path() / name; }

  TemporaryFolder folder_{temporary_root(), "mlenv-sandbox-"};
};

TEST_F(SandboxTest, PassesOnHowTheProgramEnded) {
  Sandbox seven{shell("exit 7")};
  EXPECT_EQ(seven.wait(), (Exit{7, false}));
  Sandbox killed{shell("kill -TERM $$")};
  EXPECT_EQ(killed.wait(), (Exit{128 + SIGTERM, true}));
  EXPECT_EQ(recorded("exit 9").exit, (Exit{9, false}));
  EXPECT_EQ(recorded("kill -KILL $$").exit, (Exit{128 + SIGKILL, true}));
}

TEST_F(SandboxTest, IsAnotherMachineWithOneUser) {
  const RecordedRun run = recorded(
      "id -u; id -G; hostname; echo $$; umask; pwd; wc -l < /proc/net/dev; echo >/dev/null && "
      "head -c 3 /dev/zero | wc -c; test -w /proc/sys/kernel/hostname || echo no");
  // Two lines of heading and the loopback device.
  EXPECT_EQ(run.output, "0\n0\nlocalhost\n2\n0022\n/\n3\n3\nno\n");
}

TEST_F(SandboxTest, LeavesNoTraceOfItsScaffold) {
  const RecordedRun run = recorded("test -c /dev/null && test -d /proc/self && test -d /usr/bin");
  EXPECT_EQ(run.exit.code, 0);
  for (const char* name : {"dev", "proc", "usr"}) EXPECT_FALSE(fs::exists(path(name))) << name;
}

TEST_F(SandboxTest, StacksTreesAndKeepsWhatChangedApart) {
  write_file(path("etc/one"), "1\n", false);
  write_file(path("etc/two"), "2\n", false);
  const TemporaryFolder scratch{temporary_root(), "mlenv-sandbox-"};
  SandboxCommand command = shell(
      "cat /etc/one /etc/two; rm /etc/two; echo 3 > /etc/one; chown 7:8 /etc/one; "
      "stat -c %u:%g /etc/one");
  command.root.clear();
  command.overlay = Overlay{{folder_.path()}, scratch.path(), true};
  const RecordedRun run = run_recorded(command, {}, 30s);
  EXPECT_EQ(run.output, "1\n2\n7:8\n");
  EXPECT_EQ(run.owners, (Owners{{"/etc/one", {7, 8}}}));
  EXPECT_EQ(read_file(path("etc/one")), "1\n");
  EXPECT_EQ(read_file(scratch.path() / "upper/etc/one"), "3\n");
  struct stat status {};
  ASSERT_EQ(::lstat((scratch.path() / "upper/etc/two").c_str(), &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_FALSE(fs::exists(scratch.path() / "upper/proc"));
}

TEST_F(SandboxTest, AFolderThatCannotBeListedIsNoEmptyOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "root alone can make another owner's folder";
  fs::create_directory(path("work/shut"));
  write_file(path("work/shut/file"), "x", false);
  ASSERT_EQ(::chown(path("work/shut").c_str(), 7, 7), 0);
  fs::permissions(path("work/shut"), fs::perms{0700});
  const TemporaryFolder scratch{temporary_root(), "mlenv-sandbox-"};
  make_folders(scratch.path() / "above/work/shut");  // a folder that is both of theirs
  SandboxCommand command = shell("exit 0");
  command.root.clear();
  command.overlay = Overlay{{folder_.path(), scratch.path() / "above"}, scratch.path(), true};
  // Owners of what is in it would be lost in silence.
  const Error error = error_of([&] { run_recorded(command, {{"/etc", {7, 8}}}, 30s); });
  EXPECT_NE(std::string(error.what()).find("cannot read `/work/shut`"), std::string::npos)
      << error.what();
}

TEST_F(SandboxTest, SecretsAreInMemoryAndReadOnly) {
  SandboxCommand command = shell(
      "cat /run/secrets/token; stat -c %a /run/secrets/token; stat -f -c %T /run/secrets; "
      "echo x 2>/dev/null > /run/secrets/new || echo no");
  command.secrets = {{"token", std::string("a\0\xff\n", 4)}};
  const RecordedRun run = run_recorded(command, {}, 30s);
  EXPECT_EQ(run.output, std::string("a\0\xff\n", 4) + "400\ntmpfs\nno\n");
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(SandboxTest, HasTheHostsNetworkOnlyWhenAsked) {
  const std::string script = "readlink /proc/self/ns/net";
  const std::string host = fs::read_symlink("/proc/self/ns/net").string() + "\n";
  EXPECT_NE(recorded(script).output, host);
  SandboxCommand command = shell(script);
  command.network = true;
  EXPECT_EQ(run_recorded(command, {}, 30s).output, host);
}

TEST_F(SandboxTest, ProcessOneShowsNothingOfTheHost) {
  ::setenv("MLENV_TEST_SECRET", "of the caller", 1);  // NOLINT(concurrency-mt-unsafe)
  // Descriptors of the host's mounts would lead out of the root, its environment holds logins.
  SandboxCommand command = shell(
      "for one in /proc/1/fd/* /proc/1/cwd /proc/1/root; do readlink $one && exit 1; done; "
      "cat /proc/1/environ && exit 2; exit 0");
  EXPECT_EQ(Sandbox{command}.wait(), (Exit{0, false}));
  const RecordedRun run = run_recorded(command, {}, 30s);
  EXPECT_EQ(run.exit, (Exit{0, false})) << run.output;
  EXPECT_EQ(run.output.find("of the caller"), std::string::npos);
  ::unsetenv("MLENV_TEST_SECRET");  // NOLINT(concurrency-mt-unsafe)
}

/// Perl's word for a system call's answer: `NAME ERRNO`.
constexpr const char* kRefusedCalls = R"(perl -MPOSIX -e '
  %calls = (keyctl => 250, add_key => 248, request_key => 249, unshare => 272, bpf => 321,
            mount => 165, perf_event_open => 298, userfaultfd => 323, io_uring_setup => 425);
  for (sort keys %calls) {
    $! = 0;
    my $first = $_ eq "unshare" ? 0x10000000 : -1;
    my $result = syscall($calls{$_}, $first, -1, -1, -1, -1);
    print "$_ ", $result == -1 ? $! + 0 : "done", "\n";
  }
  for my $family (40, 38) { print "socket $family ", socket(S, $family, 1, 0) ? "done" : $! + 0, "\n" }
')";

TEST_F(SandboxTest, RefusesWhatAContainerIsRefused) {
#if defined(__x86_64__)
  const std::string expected =
      "add_key 1\nbpf 1\nio_uring_setup 38\nkeyctl 1\nmount 1\nperf_event_open 1\nrequest_key "
      "1\nunshare 1\nuserfaultfd 1\nsocket 40 97\nsocket 38 97\n";
  EXPECT_EQ(recorded(kRefusedCalls).output, expected);
  SandboxCommand command = shell(std::string(kRefusedCalls) + " >/work/out");
  EXPECT_EQ(Sandbox{command}.wait(), (Exit{0, false}));
  EXPECT_EQ(read_file(path("work/out")), expected) << "a run that is not recorded";
#else
  GTEST_SKIP() << "system call numbers of x86-64";
#endif
}

TEST_F(SandboxTest, HasNoneOfTheCallersDescriptors) {
  const TemporaryFolder secret{temporary_root()};
  const Fd folder{::open(secret.path().c_str(), O_RDONLY | O_DIRECTORY)};  // NOLINT: no CLOEXEC
  std::vector<Fd> copies;
  for (const int number : {5, 77}) {  // 5 is the number of a recorded run's result
    if (::fcntl(number, F_GETFD) < 0) copies.emplace_back(::dup2(folder.get(), number));
  }
  SandboxCommand command = shell("for fd in /proc/self/fd/*; do readlink $fd; done | grep -F " +
                                 secret.path().filename().string() + " >/work/out; exit 0");
  EXPECT_EQ(Sandbox{command}.wait(), (Exit{0, false}));
  EXPECT_EQ(read_file(path("work/out")), "");
  EXPECT_EQ(run_recorded(command, {}, 30s).exit, (Exit{0, false}));
  EXPECT_EQ(read_file(path("work/out")), "");
}

// The supervisor follows a program's paths, and has the host's folder open.
TEST_F(SandboxTest, PathsDoNotLeadThroughTheSupervisorsDescriptors) {
#if defined(__x86_64__)
  const TemporaryFolder secret{temporary_root()};
  const fs::path key = secret.path() / "key";
  write_file(key, "x", false);
  ASSERT_EQ(::chmod(key.c_str(), 0600), 0);
  const std::string script =
      "ln -s /proc/1/fd /work/link; perl -e '$key = shift; for $top (\"/proc/1/fd\", "
      "\"/proc/1/task/1/fd\", \"/work/link\", \"../proc/1/fd\") { for $n (0 .. 40) { for $up (0 .. "
      "9) {"
      "$p = \"$top/$n\" . \"/..\" x $up . $key; @s = lstat $p; print \"SEEN $p\\n\" if @s;"
      "$v = pack(\"V(vvV)5\", 2, 1,7,-1, 2,7,5, 4,7,-1, 16,7,-1, 32,7,-1); $name = "
      "\"system.posix_acl_access\"; syscall(188, $p, $name, $v, length $v, 0);"
      "chown 7, 7, $p } } }' " +
      key.string();
  const RecordedRun run = recorded("cd /work; " + script);
  EXPECT_EQ(run.output, "");
  struct stat status {};
  ASSERT_EQ(::stat(key.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
#else
  GTEST_SKIP() << "system call numbers of x86-64";
#endif
}

TEST_F(SandboxTest, ShowsAProcessItsOwnFilesByProc) {
  const RecordedRun run = recorded(
      "cd /work; echo a >file; chown 5:6 file; exec 4<file; for p in /proc/self/fd/4 /dev/fd/4 "
      "/proc/self/cwd/file /proc/self/root/work/file ./file ../work/file; do stat -Lc %u:%g $p; "
      "done; chown 7:8 /dev/fd/4; stat -c %u:%g file; test -L /proc/self/fd/4 && stat -c %F "
      "/proc/self/fd/4");
  EXPECT_EQ(run.output, "5:6\n5:6\n5:6\n5:6\n5:6\n5:6\n7:8\nsymbolic link\n");
}

TEST_F(SandboxTest, HasTheRightsOfAContainer) {
  // Docker's; of the places of /proc, those that tell of the machine are covered.
  const RecordedRun run = recorded(
      "sed -n 's/^CapEff:.//p; s/^NoNewPrivs:.//p' /proc/self/status; wc -c </proc/keys; ulimit "
      "-u");
  EXPECT_TRUE(run.output.starts_with("00000000a80425fb\n1\n0\n")) << run.output;
}

TEST_F(SandboxTest, KeepsAReadOnlyRootAsItIs) {
  SandboxCommand command = shell("echo x > /work/file 2>/dev/null && exit 1; exit 0");
  command.read_only_root = true;
  EXPECT_EQ(run_recorded(command, {}, 30s).exit.code, 0);
  EXPECT_FALSE(fs::exists(path("work/file")));
  EXPECT_FALSE(fs::exists(path("dev")));
}

TEST_F(SandboxTest, MountsWhatItIsGiven) {
  const TemporaryFolder source{temporary_root()};
  write_file(source.path() / "file", "text\n", false);
  SandboxCommand command = shell("cat /a/b/file; touch /a/b/new 2>/dev/null || echo read-only");
  command.mounts.push_back({source.path(), "/a/b", true});
  EXPECT_EQ(run_recorded(command, {}, 30s).output, "text\nread-only\n");
  EXPECT_FALSE(fs::exists(path("a")));
  command.mounts.back().read_only = false;
  EXPECT_EQ(run_recorded(command, {}, 30s).output, "text\n");
  EXPECT_TRUE(fs::exists(source.path() / "new"));
}

TEST_F(SandboxTest, RecordsOwnersAndShowsThem) {
  const RecordedRun run = recorded(
      "cd /work && touch a b c && ln -s a link && chown 1:2 a && chown :7 b && chown 5 c &&"
      "chown 0:0 c && chown -h 8:9 link && stat -c '%u:%g %n' a b c link && stat -Lc %u link &&"
      "mv a moved && ln b hard && cp -p moved copy && ls -n copy | cut -d' ' -f3,4");
  EXPECT_EQ(run.output, "1:2 a\n0:7 b\n0:0 c\n8:9 link\n1\n1 2\n");
  const Owners expected{{"/work/b", {0, 7}},
                        {"/work/copy", {1, 2}},
                        {"/work/hard", {0, 7}},
                        {"/work/link", {8, 9}},
                        {"/work/moved", {1, 2}}};
  EXPECT_EQ(run.owners, expected);
  struct stat status {};
  ASSERT_EQ(::lstat(path("work/moved").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, ::geteuid()) << "on the disk all belongs to the caller";
}

TEST_F(SandboxTest, RecordsOwnersInDeepTreesWithFewDescriptors) {
  const FewDescriptors few;
  const RecordedRun run = recorded(
      "cd /work; i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i+1)); done; "
      ": >file; chown 7:8 file");
  EXPECT_EQ(run.exit, Exit{}) << run.output;
  ASSERT_EQ(run.owners.size(), 1U);
  EXPECT_EQ(run.owners.begin()->second, (Owner{7, 8}));
  EXPECT_TRUE(run.owners.begin()->first.ends_with("/d/d/file"));
}

TEST_F(SandboxTest, StartsFromTheOwnersGiven) {
  write_file(path("etc/shadow"), "", false);
  const RecordedRun run = recorded(
      "stat -c %u:%g /etc/shadow; chown :43 /etc/shadow; touch /work/x;"
      "chown --reference=/etc/shadow /work/x",
      {{"/etc/shadow", {0, 42}}, {"/etc/absent", {3, 3}}});
  EXPECT_EQ(run.output, "0:42\n");
  EXPECT_EQ(run.owners, (Owners{{"/etc/shadow", {0, 43}}, {"/work/x", {0, 43}}}));
}

TEST_F(SandboxTest, ForgetsADeletedFilesOwner) {
  // Its inode number is free at once, and the next file of many file systems gets it.
  const RecordedRun run = recorded(
      "cd /work; for i in 1 2 3 4 5 6 7 8; do touch a; chown 5:5 a; rm a; touch b$i; done;"
      "stat -c %u b* | sort -u");
  EXPECT_EQ(run.output, "0\n");
  EXPECT_TRUE(run.owners.empty());
}

TEST_F(SandboxTest, ClearsSetIdBitsAsTheKernelDoes) {
  const RecordedRun run = recorded(
      "cd /work && touch x l && mkdir d && chmod 6755 x && chmod 2644 l && chmod 2755 d &&"
      "chown 1:1 x l d && stat -c '%a %n' x l d && chmod 4755 x && stat -c %a x");
  EXPECT_EQ(run.output, "755 x\n2644 l\n2755 d\n4755\n");
}

TEST_F(SandboxTest, KeepsTheErrorsOfTheKernel) {
  const RecordedRun run = recorded("chown 1 /work/absent; chown 1 /etc/x/y; stat /work/absent");
  EXPECT_NE(run.output.find("chown: cannot access '/work/absent': No such file"), std::string::npos)
      << run.output;
  EXPECT_NE(run.exit.code, 0);
}

TEST_F(SandboxTest, AcceptsDevicesAndIdentities) {
  const RecordedRun run = recorded(
      "mknod /work/null c 1 3 && test ! -e /work/null && mkfifo /work/pipe && test -p /work/pipe &&"
      "perl -e '$( = 5; $> = 6; $! = 0; exit(defined(getpgrp) ? 0 : 1)' && echo fine");
  EXPECT_EQ(run.output, "fine\n");
}

TEST_F(SandboxTest, RecordsCapabilitiesInsteadOfSettingThem) {
#if defined(__x86_64__)
  const RecordedRun run = recorded(
      "touch /work/x; perl -e '$v = pack(\"V5\", 0x02000001, 0x400, 0, 0, 0); $n = "
      "\"security.capability\"; $f = \"/work/x\"; syscall(188, $f, $n, $v, 20, 0) == 0 or die $!;"
      "$o = \" \" x 64; print syscall(191, $f, $n, $o, 64), $o =~ /^\\Q$v\\E/ ? \"same\" : "
      "\"no\"'");
  EXPECT_EQ(run.output, "20same");
  ASSERT_EQ(run.capabilities.size(), 1U);
  EXPECT_EQ(run.capabilities.at("/work/x").size(), 20U);
  EXPECT_TRUE(run.owners.empty());
#else
  GTEST_SKIP() << "system call numbers of x86-64";
#endif
}

TEST_F(SandboxTest, KeepsTheLastOutput) {
  std::size_t seen = 0;
  const RecordedRun run = run_recorded(shell("head -c 9000000 /dev/zero; echo end"), {}, 60s,
                                       [&](std::string_view part) { seen += part.size(); });
  EXPECT_EQ(seen, 9'000'004U);
  EXPECT_EQ(run.output.size(), std::size_t{8} << 20U);
  EXPECT_TRUE(run.output.ends_with("end\n"));
}

TEST_F(SandboxTest, EndsEverythingAtTheDeadline) {
  try {
    run_recorded(shell("sleep 1000 & sleep 1000"), {}, 300ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "timeout");
  }
}

TEST_F(SandboxTest, WaitsForNoDaemon) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(recorded("setsid sleep 1000 >/dev/null 2>&1 & echo started").output, "started\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST_F(SandboxTest, SaysWhatCannotBeStarted) {
  SandboxCommand command = shell("");
  command.argv = {"/bin/absent"};
  for (const bool record : {false, true}) {
    try {
      if (record) {
        run_recorded(command, {}, 10s);
      } else {
        Sandbox{command};
      }
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "cannot-start");
      EXPECT_EQ(std::string(error.what()), "cannot start `/bin/absent`: No such file or directory");
    }
  }
}

TEST_F(SandboxTest, SaysThatItCannotBeSetUp) {
  SandboxCommand command = shell("");
  command.mounts = {{"/no/such/folder", "/mnt", true}};
  EXPECT_EQ(code_of([&] { Sandbox{command}; }), "sandbox-failed");
}

TEST(SandboxPlan, NonsenseIsABug) {
  EXPECT_EQ(code_of([] { sandbox::decode_plan("nonsense"); }), "internal");
}

TEST(SandboxPlan, TravelsWhole) {
  sandbox::Plan plan;
  plan.command.root = "/r";
  plan.command.argv = {"/bin/x", "\xff not UTF-8"};
  plan.command.mounts = {{"/from", "/to", false}};
  plan.initial = {{"/etc/\xfe", {1, 2}}};
  plan.recorded = true;
  plan.way = sandbox::Way::change_root;
  const sandbox::Plan copy = sandbox::decode_plan(sandbox::encode(plan));
  EXPECT_EQ(copy.command.argv, plan.command.argv);
  EXPECT_EQ(copy.initial, plan.initial);
  EXPECT_EQ(copy.way, plan.way);
  ASSERT_EQ(copy.command.mounts.size(), 1U);
  EXPECT_EQ(copy.command.mounts[0].target, "/to");
  EXPECT_FALSE(copy.command.mounts[0].read_only);

  const Error error =
      sandbox::decode_error(sandbox::encode(failure("a", "b").because("c").hint("d")));
  EXPECT_EQ(std::string(error.what()), "b: c");
  EXPECT_EQ(error.code(), "a");
  EXPECT_EQ(error.hint(), "d");
}

}  // namespace
}  // namespace mlenv
