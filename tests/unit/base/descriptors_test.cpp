#include "base/descriptors.hpp"
#include "base/error.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <array>
#include <csignal>
#include <functional>

#include <gtest/gtest.h>

#include "base/process.hpp"
#include "base/program_start.hpp"
#include "base/sandbox/sandbox.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace mlenv {
namespace {

/// In a process of its own: what it returns.
int status_apart(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(work());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

/// 0, and one for each thing that is not as it should be.
int begun_with(std::vector<const char*> words) {
  words.push_back(nullptr);
  begin_program(static_cast<int>(words.size()) - 1, const_cast<char**>(words.data()));  // NOLINT
  return 0;
}

TEST(Descriptors, MissingStreamsAreOpened) {
  const int found = status_apart([] {
    for (int fd = 0; fd < 4; ++fd) ::close(fd);  // the test program may have a fourth
    if (!standard_streams()) return 1;
    char byte = 0;
    if (::read(0, &byte, 1) != 0) return 2;
    if (::write(1, "x", 1) >= 0 || errno != EBADF) return 3;  // an answer is not lost in silence
    if (::write(2, "x", 1) != 1) return 4;
    return is_open(3) ? 5 : 0;
  });
  EXPECT_EQ(found, 0);
}

TEST(Descriptors, StreamsThatAreThereStay) {
  const int found = status_apart([] {
    const Pipe pipe = make_pipe();
    ::dup2(pipe.write_end.get(), 1);
    ::close(0);
    if (!standard_streams()) return 1;
    std::array<char, 1> byte{};
    if (::write(1, "y", 1) != 1 || ::read(pipe.read_end.get(), byte.data(), 1) != 1) return 2;
    return byte[0] == 'y' ? 0 : 3;
  });
  EXPECT_EQ(found, 0);
}

TEST(Descriptors, WhatTheCallerHasOpenIsClosed) {
  const int found = status_apart([] {
    const int strange = ::fcntl(0, F_DUPFD, 40);
    const int far = ::fcntl(0, F_DUPFD, 900);
    begun_with({"mlenv", "images"});
    return is_open(strange) || is_open(far) ? 1 : 0;
  });
  EXPECT_EQ(found, 0);
}

TEST(Descriptors, WhatIsNamedIsReadAndNotPassedOn) {
  for (const char* word : {"/dev/fd/40", "--env-file=/proc/self/fd/40", "/proc/1/fd/40"}) {
    const int found = status_apart([word] {
      const int named = ::fcntl(0, F_DUPFD, 40);
      begun_with({"mlenv", "load", word});
      return ::fcntl(named, F_GETFD) == FD_CLOEXEC ? 0 : 1;
    });
    EXPECT_EQ(found, 0) << word;
  }
}

TEST(Descriptors, ThoseOfOurOwnProcessesStayOpenForThem) {
  const int found = status_apart([] {
    const int given = ::fcntl(0, F_DUPFD, 40);
    begun_with({"mlenv", "__supervise"});
    return ::fcntl(given, F_GETFD) == FD_CLOEXEC ? 0 : 1;
  });
  EXPECT_EQ(found, 0);
}

TEST(Descriptors, WithoutTheSystemCallTheyAreFoundInProc) {
  const int found = status_apart([] {
    const int low = ::fcntl(0, F_DUPFD, 40);
    const int far = ::fcntl(0, F_DUPFD, 900);
    descriptors::for_each_open(3, [](int fd) { ::close(fd); });
    return is_open(low) || is_open(far) || !is_open(2) ? 1 : 0;
  });
  EXPECT_EQ(found, 0);
}

TEST(Descriptors, ANewProcessHasThoseThatAreNamedAlone) {
  const int strange = ::fcntl(0, F_DUPFD, 50);  // without O_CLOEXEC, as a library may open it
  const Pipe pipe = make_pipe();
  Command command{Purpose{"test"}};
  command.argv = {"sh", "-c", "for fd in /proc/self/fd/*; do echo ${fd##*/}; done; echo given >&6"};
  command.extra_fds = {{pipe.write_end.get(), 6}};
  const Captured run = run_captured(command, std::chrono::seconds{30});
  ::close(strange);
  // The shell's own, with which it reads the folder, is the lowest one that is free.
  EXPECT_EQ(run.out, "0\n1\n2\n3\n6\n");
  std::array<char, 6> given{};
  EXPECT_EQ(::read(pipe.read_end.get(), given.data(), given.size()), 6);
}

TEST(Descriptors, NamedOnesMayLieWhereOthersGo) {
  const int found = status_apart([] {
    close_from(kFirstBeyondStreams);
    const Pipe first = make_pipe();   // 3, 4
    const Pipe second = make_pipe();  // 5, 6
    Command command{Purpose{"test"}};
    command.argv = {"sh", "-c", "echo one >&6; echo two >&4"};
    // Each goes where the other lies.
    command.extra_fds = {{first.write_end.get(), second.write_end.get()},
                         {second.write_end.get(), first.write_end.get()}};
    if (Child{command}.wait() != Exit{}) return 1;
    std::array<char, 4> text{};
    if (::read(first.read_end.get(), text.data(), 4) != 4 || text[0] != 'o') return 2;
    if (::read(second.read_end.get(), text.data(), 4) != 4 || text[0] != 't') return 3;
    return 0;
  });
  EXPECT_EQ(found, 0);
}

TEST(Descriptors, AProgramInTheSandboxHasNone) {
  const TemporaryFolder folder{temporary_root(), "mlenv-descriptors-"};
  for (const char* name : {"bin", "lib", "lib64"}) {
    fs::create_symlink(std::string("usr/") + name, folder.path() / name);
  }
  SandboxCommand command;
  command.root = folder.path();
  command.argv = {"/bin/sh", "-c", "for fd in /proc/self/fd/*; do echo ${fd##*/}; done"};
  command.env = {"PATH=/usr/bin:/bin"};
  command.mounts = {{"/usr", "/usr", true}};
  const int strange = ::open("/", O_RDONLY | O_DIRECTORY);  // NOLINT: not O_CLOEXEC
  std::string seen;
  try {
    seen = run_recorded(command, {}, std::chrono::seconds{30}).output;
  } catch (const Error& error) {
    ::close(strange);
    GTEST_SKIP() << error.what();  // a container that lets nobody mount
  }
  ::close(strange);
  EXPECT_EQ(seen, "0\n1\n2\n3\n");
}

TEST(ProgramStart, SignalsAreAsTheyShouldBe) {
  const int found = status_apart([] {
    for (const int number : {SIGCHLD, SIGPIPE, SIGHUP}) (void)std::signal(number, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    begun_with({"mlenv"});
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (sigismember(&blocked, SIGTERM) != 0) return 1;
    for (const int number : {SIGCHLD, SIGPIPE}) {
      if (std::signal(number, SIG_DFL) != SIG_DFL) return 2;
    }
    return std::signal(SIGHUP, SIG_DFL) == SIG_IGN ? 0 : 3;  // nohup(1)
  });
  EXPECT_EQ(found, 0);
}

TEST(ProgramStart, FilesAreNeitherEverybodysNorNobodys) {
  const auto mask_after = [](mode_t before) {
    return status_apart([before] {
      ::umask(before);
      begun_with({"mlenv"});
      return static_cast<int>(::umask(0));
    });
  };
  EXPECT_EQ(mask_after(0), 02);
  EXPECT_EQ(mask_after(022), 022);
  EXPECT_EQ(mask_after(077), 077);
  EXPECT_EQ(mask_after(0777), 077);
}

TEST(ProgramStart, AVariableIsThereOnce) {
  const int found = status_apart([] {
    std::array<const char*, 8> variables{
        "TWICE=first", "A=b",          "TWICE=second",     "odd",
        "=odd",        "LISTEN_FDS=3", "NOTIFY_SOCKET=/x", nullptr};
    environ = const_cast<char**>(variables.data());  // NOLINT: environ(7) has it so
    begun_with({"mlenv"});
    std::string all;
    for (char** one = environ; *one != nullptr; ++one) all += std::string(*one) + ";";
    return all == "TWICE=first;A=b;" ? 0 : 1;
  });
  EXPECT_EQ(found, 0);
}

}  // namespace
}  // namespace mlenv
