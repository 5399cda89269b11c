#include "runner/local/namespaces.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/process.hpp"

namespace mlenv {
namespace {

/// Does `work` in a process and namespaces of its own, as the stage of a run; what it returns, or
/// its error's code. (A test runner has one thread at this point, as unshare needs.)
std::string in_stage(const std::function<std::string()>& work) {
  Pipe pipe = make_pipe();
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::string answer;
    try {
      ::prctl(PR_SET_CHILD_SUBREAPER, 1);
      enter_namespaces();
      answer = work();
    } catch (const Error& error) {
      answer = error.code() + ": " + error.what();
    }
    write_all(pipe.write_end.get(), as_bytes(answer));
    ::_exit(0);
  }
  pipe.write_end.reset();
  FdSource source{pipe.read_end.get()};
  std::string answer = read_all(source, 1U << 20U);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  return answer;
}

std::string line_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name + ":");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

/// How many entries there are once there are `most`, or after some seconds: the init answers, and
/// only then closes the pipe of the answer.
std::size_t listed_soon(const fs::path& folder, std::size_t most) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::size_t count = list_folder(folder).size();
  while (count > most && std::chrono::steady_clock::now() < until) {
    ::sched_yield();
    count = list_folder(folder).size();
  }
  return count;
}

TEST(PidNamespace, ItsInitHasNothingOfTheMachine) {
  const std::string seen = in_stage([] {
    PidNamespace processes;
    processes.settle();
    const fs::path init = fmt::format("/proc/{}", processes.init());
    const std::string status = read_file(init / "status");
    std::string text = line_of(status, "CapPrm") + " " + line_of(status, "CapEff") + " " +
                       line_of(status, "NoNewPrivs") + "\n";
    const std::string words = read_file(init / "cmdline");
    text += fmt::format(
        "words {}\n", std::count_if(words.begin(), words.end(), [](char c) { return c != '\0'; }));
    const std::string mounts = read_file(init / "mountinfo");
    text += fmt::format("mounts {}\n", std::count(mounts.begin(), mounts.end(), '\n'));
    std::error_code error;
    (void)fs::directory_iterator(init / "fd", error);
    if (!error) {  // an ordinary user may not look, though it is their own process
      for (const fs::path& one : list_folder(init / "root")) text += "root " + one.string() + "\n";
      const std::size_t descriptors = listed_soon(init / "fd", 1);
      for (const fs::path& one : list_folder(init / "fd")) {
        if (!fs::read_symlink(one, error).string().starts_with("pipe:")) text += one.string();
      }
      if (descriptors > 0) text += fmt::format("descriptors {}\n", descriptors);
    }
    return text;
  });
  const std::string zero = ":\t0000000000000000";
  const std::string expected =
      "CapPrm" + zero + " CapEff" + zero + " NoNewPrivs:\t1\nwords 0\nmounts 1\n";
  EXPECT_TRUE(seen == expected || seen == expected + "descriptors 1\n") << seen;
}

TEST(PidNamespace, IsJoinedByItsPathAndEndsWithAllInIt) {
  const std::string seen = in_stage([] {
    PidNamespace processes;
    processes.settle();
    Pipe pipe = make_pipe();
    const pid_t child = ::fork();
    if (child == 0) {
      const Fd space = open_file(processes.path(), O_RDONLY);
      if (::setns(space.get(), CLONE_NEWPID) != 0) ::_exit(1);
      if (const pid_t job = ::fork(); job != 0) ::_exit(job > 0 ? 0 : 1);
      (void)write_quietly(pipe.write_end.get(), std::to_string(::getppid() == 0 ? 0 : ::getpid()));
      ::pause();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    pipe.write_end.reset();
    char number = 0;
    const ssize_t count = ::read(pipe.read_end.get(), &number, 1);
    processes.end();
    // The job's end of the pipe is closed with it.
    const ssize_t rest = ::read(pipe.read_end.get(), &number, 1);
    return fmt::format("{} {} {}", WEXITSTATUS(status), count, rest);
  });
  EXPECT_EQ(seen, "0 1 0");
}

/// This process's namespace of processes, and what its standard streams are.
void write_streams(const fs::path& file) {
  std::string own = fs::read_symlink("/proc/self/ns/pid").string();
  for (const char* fd : {"0", "1", "2"}) {
    own += " " + fs::read_symlink(fs::path("/proc/self/fd") / fd).string();
  }
  write_file(file, own, /*durable=*/false);
}

TEST(PidNamespace, WhatIsLeftToDoIsDoneOutsideWhenItsOwnerIsKilled) {
  const TemporaryFolder folder{temporary_root()};
  Pipe pipe = make_pipe();
  const pid_t stage = ::fork();
  if (stage == 0) {
    try {
      pipe.read_end.reset();
      enter_namespaces();
      PidNamespace processes;
      processes.settle();
      processes.watch_over([&] { write_streams(folder.path() / "done"); }, pipe.write_end.get());
      (void)::raise(SIGKILL);
    } catch (const Error&) {
    }
    ::_exit(1);
  }
  pipe.write_end.reset();
  ASSERT_EQ(::waitpid(stage, nullptr, 0), stage);
  // Until the last one that holds it is gone.
  char byte = 0;
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), 0);
  // Its streams are its own: none of them is the pipe that it holds.
  EXPECT_EQ(read_file(folder.path() / "done"),
            fs::read_symlink("/proc/self/ns/pid").string() + " /dev/null /dev/null /dev/null");
}

}  // namespace
}  // namespace mlenv
