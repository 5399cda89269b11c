#include "runner/local/signals.hpp"

#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>

namespace mlenv {
namespace {

// A handler has no other way to its data. A pidfd, so that a signal after the child's end goes to
// nobody rather than to whoever has its number by then.
std::atomic<int> target{-1};
std::atomic<unsigned> kept{0};

void send(int number) { ::syscall(SYS_pidfd_send_signal, target.load(), number, nullptr, 0); }

void pass_on(int number) {
  const int before = errno;
  if (target.load() >= 0) {
    send(number);
  } else {
    kept.fetch_or(1U << static_cast<unsigned>(number));
  }
  errno = before;
}

}  // namespace

sigset_t forwarded_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kForwarded) sigaddset(&set, number);
  return set;
}

SignalForwarding::SignalForwarding() {
  kept.store(0);
  for (std::size_t i = 0; i < kForwarded.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = pass_on;
    action.sa_flags = SA_RESTART;
    ::sigaction(kForwarded[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kForwarded[i], &action, nullptr);
  }
}

SignalForwarding::~SignalForwarding() {
  for (std::size_t i = 0; i < kForwarded.size(); ++i) {
    ::sigaction(kForwarded[i], &before_[i], nullptr);
  }
  const int fd = target.exchange(-1);
  if (fd >= 0) ::close(fd);
}

void SignalForwarding::to(pid_t pid) {
  target.store(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const unsigned early = kept.exchange(0);
  for (const int number : kForwarded) {
    if ((early & (1U << static_cast<unsigned>(number))) != 0) send(number);
  }
}

}  // namespace mlenv
