#include "base/process.hpp"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <future>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::seconds kLongRun{30};

Command command(std::vector<std::string> argv) {
  Command result{Purpose{"test"}};
  result.argv = std::move(argv);
  return result;
}

TEST(Process, CapturesBothOutputsAndTheStatus) {
  const Captured run =
      run_captured(command({"sh", "-c", "cat; echo oops >&2; exit 7"}), kLongRun, "in");
  EXPECT_EQ(run.out, "in");
  EXPECT_EQ(run.err, "oops\n");
  EXPECT_EQ(run.exit, (Exit{7, false}));
}

TEST(Process, LargeInputAndOutputDoNotBlockEachOther) {
  const std::string input(5'000'000, 'x');
  EXPECT_EQ(run_captured(command({"cat"}), kLongRun, input).out, input);
  // A program that does not read its input is no error.
  EXPECT_EQ(run_captured(command({"true"}), kLongRun, input).exit.code, 0);
}

TEST(Process, SignalsAreToldAsAShellDoes) {
  const Captured run = run_captured(command({"sh", "-c", "kill -TERM $$"}), kLongRun);
  EXPECT_EQ(run.exit, (Exit{128 + SIGTERM, true}));
}

TEST(Process, EnvironmentAndFolderAreThoseGiven) {
  Command shell = command({"/bin/sh", "-c", "echo $ONLY:$HOME; pwd"});
  shell.env = {{"ONLY=1"}};
  shell.folder = "/usr/lib";
  EXPECT_EQ(run_captured(shell, kLongRun).out, "1:\n/usr/lib\n");
}

TEST(Process, ArgumentsAreNeverAShellsWords) {
  EXPECT_EQ(run_captured(command({"printf", "%s|", "a b", "$HOME", "*"}), kLongRun).out,
            "a b|$HOME|*|");
}

TEST(Process, AbsentProgramsAreErrors) {
  EXPECT_EQ(code_of([] { (void)run_captured(command({"no-such-program-here"}), kLongRun); }),
            "cannot-start");
  EXPECT_EQ(find_program("no-such-program-here"), std::nullopt);
  EXPECT_TRUE(find_program("sh"));
}

/// Holds a process: its parent cannot reap it before we let go, as with one that waits in the
/// kernel.
class Tracer {
 public:
  explicit Tracer(pid_t traced) {
    Pipe ready = make_pipe();
    Pipe end = make_pipe();
    pid_ = ::fork();
    if (pid_ == 0) {
      end.write_end.reset();
      const bool holds = ::ptrace(PTRACE_SEIZE, traced, nullptr, nullptr) == 0;
      char byte = holds ? 'y' : 'n';
      (void)!::write(ready.write_end.get(), &byte, 1);
      (void)!::read(end.read_end.get(), &byte, 1);
      ::_exit(0);
    }
    char byte = 0;
    holds_ = ::read(ready.read_end.get(), &byte, 1) == 1 && byte == 'y';
    end_ = std::move(end.write_end);
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  ~Tracer() { release(); }
  bool holds() const { return holds_; }
  void release() {
    end_.reset();
    if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  bool holds_ = false;
  Fd end_;
};

TEST(Process, OneThatCannotDieIsLeftBehind) {
  std::optional<Child> child;
  child.emplace(command({"sleep", "1000"}));
  const pid_t pid = child->pid();
  Tracer tracer{pid};
  if (!tracer.holds()) GTEST_SKIP() << "ptrace(2) is not allowed here";
  auto left = std::async(std::launch::async, [&] { child.reset(); });
  const bool returned = left.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  tracer.release();
  left.wait();
  EXPECT_TRUE(returned);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);  // it was killed, and nobody has reaped it
}

TEST(Process, TheDeadlineEndsTheWholeGroup) {
  const auto start = std::chrono::steady_clock::now();
  // The grandchild holds the pipe: only ending the group ends the call.
  EXPECT_EQ(code_of([] {
              (void)run_captured(command({"sh", "-c", "sleep 60 & sleep 60"}),
                                 std::chrono::milliseconds{100});
            }),
            "timeout");
  EXPECT_LT(std::chrono::steady_clock::now() - start, kLongRun);
}

TEST(Process, WaitWithADeadlineComesBack) {
  Child child{command({"sleep", "60"})};
  EXPECT_EQ(child.wait(std::chrono::milliseconds{10}), std::nullopt);
  child.signal(SIGKILL);
  const std::optional<Exit> exit = child.wait();
  EXPECT_EQ(exit, (Exit{128 + SIGKILL, true}));
  EXPECT_EQ(child.wait(), exit);
}

TEST(Process, DescriptorsDoNotLeakIntoChildren) {
  const Pipe pipe = make_pipe();
  // What the tests themselves were given may be there; ours must not.
  const std::string script = "! [ -e /proc/self/fd/$1 ] && ! [ -e /proc/self/fd/$2 ]";
  const Captured run =
      run_captured(command({"sh", "-c", script, "sh", std::to_string(pipe.read_end.get()),
                            std::to_string(pipe.write_end.get())}),
                   kLongRun);
  EXPECT_EQ(run.exit.code, 0);
}

TEST(Process, ExtraDescriptorsArrive) {
  Pipe pipe = make_pipe();
  Command writer = command({"sh", "-c", "echo hi >&7"});
  writer.extra_fds = {{pipe.write_end.get(), 7}};
  Child child{writer};
  pipe.write_end.reset();
  FdSource source{pipe.read_end.get()};
  EXPECT_EQ(read_all(source, 100), "hi\n");
  EXPECT_EQ(child.wait(), (Exit{0, false}));
}

TEST(Process, AReaderThatGoesInTheMiddleOfAWriteEndsNobody) {
  Pipe pipe = make_pipe();
  Command reader = command({"true"});
  reader.stdin_fd = pipe.read_end.get();
  Child child{reader};
  pipe.read_end.reset();
  const std::string much(1U << 20U, 'x');  // more than a pipe takes
  while (write_quietly(pipe.write_end.get(), much) > 0) {
  }
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(child.wait(), (Exit{0, false}));
}

TEST(Process, OwnExecutableIsThisTest) { EXPECT_TRUE(fs::exists(own_executable())); }

}  // namespace
}  // namespace mlenv
