#include "runner/local/terminal.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"
#include "base/files.hpp"
#include "runner/local/reap_soon.hpp"

namespace mlenv {

RawTerminal::RawTerminal() : engaged_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
  if (!engaged_) return;
  termios raw = before_;
  ::cfmakeraw(&raw);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

RawTerminal::~RawTerminal() {
  if (engaged_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

winsize terminal_size() {
  winsize size{};
  ::ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
  return size;
}

void follow_size(int master) {
  const winsize size = terminal_size();
  if (size.ws_row > 0) ::ioctl(master, TIOCSWINSZ, &size);
}

bool copy_some(int from, int to) {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::read(from, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  try {
    write_all(to, as_bytes(std::string_view{buffer.data(), static_cast<std::size_t>(count)}));
  } catch (const Error&) {
    return false;
  }
  return true;
}

void relay_terminal(const Fd& master) {
  sigset_t resized;
  sigemptyset(&resized);
  sigaddset(&resized, SIGWINCH);
  ::pthread_sigmask(SIG_BLOCK, &resized, nullptr);
  const Fd sizes{::signalfd(-1, &resized, SFD_CLOEXEC | SFD_NONBLOCK)};
  const RawTerminal raw;
  follow_size(master.get());
  bool input_open = true;
  while (true) {
    std::array<pollfd, 3> fds{{{master.get(), POLLIN, 0},
                               {input_open ? STDIN_FILENO : -1, POLLIN, 0},
                               {sizes.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[2].revents != 0) {
      signalfd_siginfo info{};
      while (::read(sizes.get(), &info, sizeof info) > 0) {
      }
      follow_size(master.get());
    }
    if (fds[1].revents != 0) input_open = copy_some(STDIN_FILENO, master.get());
    if (fds[0].revents != 0 && !copy_some(master.get(), STDOUT_FILENO)) return;
  }
}

TerminalRelay::TerminalRelay(const Fd& master) : master_(master.get()) {
  pid_ = ::fork();
  if (pid_ < 0) throw os_error(errno, "cannot start a process");
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Sockets among them, which tell others that we live.
  const auto kept = static_cast<unsigned>(master.get());
  if (kept > 3) ::close_range(3, kept - 1, 0);
  ::close_range(kept + 1, ~0U, 0);
  relay_terminal(master);
  ::_exit(0);
}

TerminalRelay::~TerminalRelay() {
  // It ends when nobody has the terminal's other end any more. Whoever keeps that open says
  // nothing more; what is there is shown, however slowly it is read.
  constexpr std::chrono::seconds kMost{3};
  reap_soon(pid_, kMost, [this] {
    pollfd more{master_, POLLIN, 0};
    return ::poll(&more, 1, 0) > 0 && (more.revents & POLLIN) != 0;
  });
}

}  // namespace mlenv
