#include "cli/watch_terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/process.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kOwnScreen = "\033[?1049h\033[?25l\033[H";
constexpr std::string_view kTheirScreen = "\033[?25h\033[?1049l";
constexpr std::string_view kToTheTop = "\033[H";
constexpr std::string_view kClearLine = "\033[K";
constexpr std::string_view kClearBelow = "\033[J";
constexpr std::string_view kNoWrap = "\033[?7l";
constexpr std::string_view kWrap = "\033[?7h";

/// All of it; a terminal that is gone is none to draw on.
void draw(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write_quietly(STDERR_FILENO, text);
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) ::sigaddset(&set, number);
  return set;
}

}  // namespace

WatchTerminal::WatchTerminal(bool draws) : draws_(draws) {
  const sigset_t set = watched_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
  signals_ = Fd{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!signals_) throw os_error(errno, "cannot watch for signals");
  if (!draws_) return;
  // Only from the foreground may a terminal be set, or read.
  const bool ours = ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  keys_ = ours && ::tcgetattr(STDIN_FILENO, &before_) == 0;
  if (keys_) {
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    quiet.c_cc[VMIN] = 0;
    quiet.c_cc[VTIME] = 0;
    quiet.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stop would leave this screen behind
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
  }
  draw(kOwnScreen);
}

WatchTerminal::~WatchTerminal() {
  if (draws_) draw(kTheirScreen);
  if (keys_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

WatchEvent WatchTerminal::take_signals() const {
  WatchEvent event = WatchEvent::time;
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo != SIGWINCH) return WatchEvent::leave;
    event = WatchEvent::resize;
  }
  return event;
}

bool WatchTerminal::key_leaves() const {
  std::array<char, 64> keys{};
  const ssize_t count = ::read(STDIN_FILENO, keys.data(), keys.size());
  for (ssize_t i = 0; i < count; ++i) {
    const char key = keys.at(static_cast<std::size_t>(i));
    if (key == 'q' || key == 'Q') return true;
  }
  return false;
}

WatchEvent WatchTerminal::wait_until(std::chrono::steady_clock::time_point when) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(when - std::chrono::steady_clock::now());
    if (left.count() <= 0) return WatchEvent::time;
    std::array<pollfd, 2> fds = {
        {{signals_.get(), POLLIN, 0}, {keys_ ? STDIN_FILENO : -1, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait");
    }
    if (fds[0].revents != 0) {
      if (const WatchEvent event = take_signals(); event != WatchEvent::time) return event;
    }
    if ((fds[1].revents & POLLIN) != 0 && key_leaves()) return WatchEvent::leave;
    if ((fds[1].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) keys_ = false;
  }
}

WatchTerminal::Size WatchTerminal::size() const {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

void WatchTerminal::show(const std::vector<std::string>& lines) const {
  std::string text{kNoWrap};
  text += kToTheTop;
  bool first = true;
  for (const std::string& line : lines) {
    if (!first) text += "\r\n";
    text.append(line).append(kClearLine);
    first = false;
  }
  text.append(kClearBelow).append(kWrap);
  draw(text);
}

}  // namespace mlenv::cli
