#include "base/standard_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace mlenv {
namespace {

std::atomic<int> failed_with{0};  // NOLINT: the stream is the process's

/// `mlenv images | head -1`: quietly, also where this process ignores the signal.
[[noreturn]] void end_unread() {
  constexpr int kStatus = 128 + SIGPIPE;
  (void)std::signal(SIGPIPE, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  (void)std::raise(SIGPIPE);
  std::_Exit(kStatus);
}

}  // namespace

void write_answer(std::string_view bytes) noexcept {
  while (!bytes.empty() && failed_with == 0) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      // Another has made it one that does not wait (O_NONBLOCK is the file's).
      pollfd room{STDOUT_FILENO, POLLOUT, 0};
      (void)::poll(&room, 1, -1);
    } else if (errno == EPIPE) {
      end_unread();
    } else if (errno != EINTR) {
      answer_failed(errno);
    }
  }
}

void answer_failed(int error_number) noexcept {
  int none = 0;
  failed_with.compare_exchange_strong(none, error_number);
}

int answer_error() noexcept { return failed_with; }

int settle_answers() noexcept {
  const int copy = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0 && ::close(copy) != 0 && errno != EINTR) answer_failed(errno);
  return answer_error();
}

Error lost_answer() {
  return failure("answer-lost", "cannot write the answer")
      .because(errno_text(answer_error()))
      .hint("send standard output where there is room; what the command did stays done");
}

}  // namespace mlenv
