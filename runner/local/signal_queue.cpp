#include "runner/local/signal_queue.hpp"

#include <sys/signalfd.h>
#include <unistd.h>
#include <cerrno>

#include "base/error.hpp"
#include "runner/local/signals.hpp"

namespace mlenv {

SignalQueue::SignalQueue() {
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
}

SignalQueue::~SignalQueue() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

int SignalQueue::next() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return 0;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace mlenv
