#include "runner/local/signals.hpp"

#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

namespace mlenv {
namespace {

// A handler has no other way to its data. A pidfd, so that a signal after the child's end goes to
// nobody rather than to whoever has its number by then.
std::atomic<int> child_pidfd{-1};
std::atomic<unsigned> early_signals{0};
std::atomic<int> first_end_signal{0};      ///< of SIGINT and SIGTERM
std::atomic<std::int64_t> first_at{0};     ///< when, in milliseconds
std::atomic<std::int64_t> asked_twice{0};  ///< when, in milliseconds; 0: not yet

std::int64_t now_ms() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);  // may be asked in a handler (signal-safety(7))
  constexpr std::int64_t kThousand = 1000;
  constexpr std::int64_t kMillion = 1'000'000;
  return static_cast<std::int64_t>(time.tv_sec) * kThousand + time.tv_nsec / kMillion;
}

void count(int number) {
  if (number != SIGINT && number != SIGTERM) return;
  int none = 0;
  if (first_end_signal.compare_exchange_strong(none, number)) {
    first_at.store(now_ms());
    return;
  }
  constexpr std::int64_t kOneRequest = 300;  // ms: systemd sends one to all processes of a unit
  if (now_ms() - first_at.load() < kOneRequest) return;
  std::int64_t never = 0;
  asked_twice.compare_exchange_strong(never, now_ms());
}

void send(int number) { ::syscall(SYS_pidfd_send_signal, child_pidfd.load(), number, nullptr, 0); }

void pass_on(int number) {
  const int before = errno;
  count(number);
  if (child_pidfd.load() >= 0) {
    send(number);
  } else {
    early_signals.fetch_or(1U << static_cast<unsigned>(number));
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
  early_signals.store(0);
  first_end_signal.store(0);
  first_at.store(0);
  asked_twice.store(0);
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
  const int fd = child_pidfd.exchange(-1);
  if (fd >= 0) ::close(fd);
}

void SignalForwarding::to(pid_t pid) {
  child_pidfd.store(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const unsigned early = early_signals.exchange(0);
  for (const int number : kForwarded) {
    if ((early & (1U << static_cast<unsigned>(number))) != 0) send(number);
  }
}

std::optional<SignalForwarding::Insistence> SignalForwarding::insistence() {
  const std::int64_t when = asked_twice.load();
  if (when == 0) return std::nullopt;
  // std::chrono::steady_clock is CLOCK_MONOTONIC here.
  return Insistence{std::chrono::steady_clock::time_point{std::chrono::milliseconds{when}},
                    first_end_signal.load()};
}

}  // namespace mlenv
