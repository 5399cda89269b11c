#include "runner/local/reap_soon.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/handle.hpp"

namespace mlenv {
namespace {

using std::chrono::steady_clock;

/// True: it is reaped, or nobody's to reap.
bool is_reaped(pid_t pid) {
  const pid_t ended = ::waitpid(pid, nullptr, WNOHANG);
  return ended == pid || (ended < 0 && errno != EINTR);
}

bool ends_within(pid_t pid, const Fd& ended, std::chrono::milliseconds most) {
  const auto until = steady_clock::now() + most;
  while (!is_reaped(pid)) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
    if (left <= 0) return false;
    constexpr std::int64_t kWithout = 20;  // where the kernel gives no descriptor
    pollfd one{ended.get(), POLLIN, 0};
    const int wait = static_cast<int>(ended ? left : std::min(left, kWithout));
    if (::poll(&one, 1, wait) <= 0) continue;
    // It may be told as dead a moment before it can be reaped.
    if (is_reaped(pid)) return true;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace

void reap_soon(pid_t pid, std::chrono::milliseconds most,
               const std::function<bool()>& may_take_longer) noexcept {
  if (pid <= 0) return;
  constexpr std::chrono::seconds kMostDying{3};
  const Fd ended{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  while (!ends_within(pid, ended, most)) {
    if (may_take_longer && may_take_longer()) continue;
    ::kill(pid, SIGKILL);
    (void)ends_within(pid, ended, kMostDying);
    return;
  }
}

}  // namespace mlenv
