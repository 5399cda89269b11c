#include "runner/local/signal_queue.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/local/signals.hpp"

namespace mlenv {
namespace {

using std::chrono::steady_clock;

int taken_from(const Fd& signals) {
  signalfd_siginfo info{};
  if (::read(signals.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return 0;
  return static_cast<int>(info.ssi_signo);
}

Fd event() {
  Fd fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!fd) throw os_error(errno, "cannot wait for signals");
  return fd;
}

void ring(const Fd& event) {
  constexpr std::uint64_t kOne = 1;
  (void)!::write(event.get(), &kOne, sizeof kOne);
}

/// Whoever does not read what it says must not keep it.
[[noreturn]] void end_at_once(int number) {
  constexpr std::string_view kWhy =
      "mlenv: ended at once, as was asked twice: something that it waits for does not go on\n";
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0) {
    (void)!::write(STDERR_FILENO, kWhy.data(), kWhy.size());
  }
  ::_exit(kSignalBase + number);
}

}  // namespace

SignalQueue::SignalQueue(Impatience impatience, std::chrono::milliseconds held_up)
    : held_up_(held_up) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kForwarded) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = Fd{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd_) throw os_error(errno, "cannot wait for signals");
  if (impatience == Impatience::none) return;
  impatient_.emplace();
  impatient_->ready = event();
  impatient_->over = event();
  impatient_->thread = std::thread([this] { look_on(); });
}

SignalQueue::~SignalQueue() {
  if (impatient_) {
    ring(impatient_->over);
    impatient_->thread.join();
    // As if nobody had taken them.
    for (const int number : impatient_->waiting) ::kill(::getpid(), number);
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalQueue::look_on() const {
  const auto look = static_cast<int>(held_up_.count() / 10 + 1);
  constexpr std::size_t kTwice = 2;
  Impatient& own = *impatient_;
  steady_clock::time_point since{};  // one that ends programs waits
  bool one_waits = false;
  std::size_t came = 0;  // of these
  int first = 0;
  while (true) {
    std::array<pollfd, 2> fds{{{fd_.get(), POLLIN, 0}, {own.over.get(), POLLIN, 0}}};
    (void)::poll(fds.data(), fds.size(), one_waits ? look : -1);
    if (fds[1].revents != 0) return;
    const std::lock_guard lock{own.mutex};
    while (const int number = taken_from(fd_)) {
      own.waiting.push_back(number);
      ring(own.ready);
      if (ends_programs(number) && came++ == 0) first = number;
    }
    if (std::none_of(own.waiting.begin(), own.waiting.end(), ends_programs)) {
      one_waits = false;
    } else if (!std::exchange(one_waits, true)) {
      since = steady_clock::now();
    } else if (came >= kTwice && steady_clock::now() - since >= held_up_) {
      end_at_once(first);
    }
  }
}

int SignalQueue::next() const {
  if (!impatient_) return taken_from(fd_);
  const std::lock_guard lock{impatient_->mutex};
  if (impatient_->waiting.empty()) {
    std::uint64_t count = 0;
    (void)!::read(impatient_->ready.get(), &count, sizeof count);
    return 0;
  }
  const int number = impatient_->waiting.front();
  impatient_->waiting.pop_front();
  return number;
}

}  // namespace mlenv
