#include "base/standard_output.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <functional>

#include <gtest/gtest.h>

#include "base/process.hpp"

namespace mlenv {
namespace {

/// In a process of its own, with standard output there: its status, as waitpid(2) gives it.
int status_writing_to(int output, const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(output, STDOUT_FILENO);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

TEST(StandardOutput, AFullDiskIsRemembered) {
  const Fd full = open_file("/dev/full", O_WRONLY);
  const int status = status_writing_to(full.get(), [] {
    if (answer_error() != 0) return 1;
    write_answer("lost");
    if (answer_error() != ENOSPC || settle_answers() != ENOSPC) return 2;
    const Error error = lost_answer();
    return error.code() == "answer-lost" && error.frames().at(0) == "cannot write the answer" ? 0
                                                                                              : 3;
  });
  EXPECT_EQ(status, 0);
}

TEST(StandardOutput, NothingFollowsWhatIsMissing) {
  const TemporaryFolder folder{temporary_root(), "mlenv-output-"};
  const Fd file = open_file(folder.path() / "out", O_WRONLY | O_CREAT);
  const int status = status_writing_to(file.get(), [] {
    write_answer("one\n");
    answer_failed(EIO);
    write_answer("three\n");
    return settle_answers() == EIO ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder.path() / "out"), "one\n");
}

TEST(StandardOutput, AllArrivesWhereThePipeDoesNotWait) {
  Pipe pipe = make_pipe();
  ::fcntl(pipe.write_end.get(), F_SETFL, O_NONBLOCK);
  const std::string text(1'000'000, 'x');
  const pid_t writer = ::fork();
  if (writer == 0) {
    ::dup2(pipe.write_end.get(), STDOUT_FILENO);
    write_answer(text);
    ::_exit(settle_answers());
  }
  pipe.write_end.reset();
  FdSource source{pipe.read_end.get()};
  EXPECT_EQ(read_all(source, 2'000'000), text);
  int status = -1;
  ::waitpid(writer, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(StandardOutput, WithoutAReaderTheProcessEndsAsBySigpipe) {
  Pipe pipe = make_pipe();
  pipe.read_end.reset();
  const int status = status_writing_to(pipe.write_end.get(), [] {
    (void)std::signal(SIGPIPE, SIG_IGN);
    write_answer("unread");
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGPIPE);
}

}  // namespace
}  // namespace mlenv
