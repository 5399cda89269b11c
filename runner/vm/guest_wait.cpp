#include "runner/vm/guest_wait.hpp"

#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"

namespace mlenv {

int waiting_end_signal() {
  sigset_t waiting;
  sigemptyset(&waiting);
  ::sigpending(&waiting);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (sigismember(&waiting, number) == 1) return number;
  }
  return 0;
}

Heard wait_for_guest(const GuestWait& wait) {
  using std::chrono::milliseconds;
  using Clock = std::chrono::steady_clock;
  // A signal that ends nothing stays where it is, and poll(2) would return for it each time: then
  // one look without it follows each look with it.
  constexpr milliseconds kPause{100};
  const auto until = Clock::now() + wait.patience;
  bool others_wait = false;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    if (left.count() <= 0) return Heard::nothing;
    std::array<pollfd, 5> fds{{{wait.answer, POLLIN, 0},
                               {wait.ended[0], POLLIN, 0},
                               {wait.ended[1], POLLIN, 0},
                               {others_wait ? -1 : wait.watch.signals, POLLIN, 0},
                               {wait.watch.socket, 0, 0}}};
    const milliseconds most = others_wait ? std::min(left, kPause) : left;
    if (::poll(fds.data(), fds.size(), static_cast<int>(most.count())) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait for the virtual machine");
    }
    if (fds[4].revents != 0) return Heard::nobody_waits;
    others_wait = fds[3].revents != 0;
    if (others_wait && waiting_end_signal() != 0) return Heard::signal;
    if (fds[0].revents != 0) return Heard::answer;
    if (fds[1].revents != 0 || fds[2].revents != 0) return Heard::end;
  }
}

}  // namespace mlenv
