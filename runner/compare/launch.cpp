#include "runner/compare/launch.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "runner/compare/output.hpp"

namespace mlenv::compare {
namespace {

using std::chrono::steady_clock;
constexpr std::size_t kMostOutput = std::size_t{16} << 20;

double seconds_since(steady_clock::time_point begun) {
  return std::chrono::duration<double>(steady_clock::now() - begun).count();
}

sigset_t stopping() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&set, number);
  }
  return set;
}

/// Milliseconds for poll(2), none left is 0.
int milliseconds_left(steady_clock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
  constexpr std::int64_t kMost = 1'000'000'000;
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kMost));
}

enum class Event {
  said,     ///< something, or nothing of interest
  ended,    ///< the process; what it left behind may still hold its streams
  nothing,  ///< time is up, or a signal came
};

/// Both streams of a process, read until it ends.
class Streams {
 public:
  Streams(Pipe& out, Pipe& err, Launched& into)
      : out_(&out.read_end), err_(&err.read_end), into_(into), begun_(steady_clock::now()) {}

  void begin(steady_clock::time_point begun) { begun_ = begun; }

  Event wait(const Started& child, steady_clock::time_point deadline, const StopSignals& signals) {
    std::array<pollfd, 4> fds{{{*out_ ? out_->get() : -1, POLLIN, 0},
                               {*err_ ? err_->get() : -1, POLLIN, 0},
                               {signals.fd(), POLLIN, 0},
                               {child.ended_fd(), POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), milliseconds_left(deadline));
    if (ready < 0 && errno == EINTR) return Event::said;
    if (ready <= 0 || fds[2].revents != 0) return Event::nothing;
    if (fds[0].revents != 0) (void)take(*out_, into_.out, true);
    if (fds[1].revents != 0) (void)take(*err_, into_.err, false);
    return fds[3].revents != 0 ? Event::ended : Event::said;
  }

  /// What is in them by now, and no more: others may go on writing.
  void drain() {
    drain(*out_, into_.out, true);
    drain(*err_, into_.err, false);
  }

 private:
  void drain(Fd& fd, std::string& text, bool look) {
    int waiting = 0;
    if (!fd || ::ioctl(fd.get(), FIONREAD, &waiting) != 0) return;
    for (auto left = static_cast<std::int64_t>(waiting); fd && left > 0;) {
      left -= take(fd, text, look);
    }
  }
  /// How many bytes there were.
  std::int64_t take(Fd& fd, std::string& text, bool look) {
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) return 0;
    if (count <= 0) {
      fd.reset();
      return 0;
    }
    const std::string_view said(buffer.data(), static_cast<std::size_t>(count));
    if (look) {
      if (text.size() < kMostOutput) text += said;
      look_at_lines();
      return count;
    }
    // Of standard error the end is what says why.
    if (text.size() > kMostOutput) text.erase(0, kMostOutput / 2);
    text += said;
    return count;
  }
  void look_at_lines() {
    const double now = seconds_since(begun_);
    for (std::size_t end = into_.out.find('\n', looked_); end != std::string::npos;
         end = into_.out.find('\n', looked_)) {
      const std::string_view line = std::string_view(into_.out).substr(looked_, end - looked_);
      if (const auto mark = read_mark(line)) into_.marks.emplace(*mark, now);
      into_.last_line = now;
      looked_ = end + 1;
    }
  }

  Fd* out_;
  Fd* err_;
  Launched& into_;
  steady_clock::time_point begun_;
  std::size_t looked_ = 0;
};

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = stopping();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = Fd{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd_) throw os_error(errno, "cannot wait for signals");
}

StopSignals::~StopSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

int StopSignals::came() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) == sizeof info && came_ == 0) {
    came_ = static_cast<int>(info.ssi_signo);
  }
  return came_;
}

bool StopSignals::any() const {
  pollfd fd{fd_.get(), POLLIN, 0};
  return came_ != 0 || ::poll(&fd, 1, 0) > 0;
}

Launched launch(const Minder& minder, const Command& command, std::chrono::milliseconds deadline,
                StopSignals& signals) {
  Launched launched;
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Command with_pipes = command;
  with_pipes.stdout_fd = out.write_end.get();
  with_pipes.stderr_fd = err.write_end.get();
  Streams streams(out, err, launched);
  Started child(minder, with_pipes);
  streams.begin(child.begun());
  const steady_clock::time_point until = child.begun() + deadline;
  out.write_end.reset();
  err.write_end.reset();
  Event event = Event::said;
  while (event == Event::said) event = streams.wait(child, until, signals);
  launched.stopped = signals.came() != 0;
  if (launched.stopped || event == Event::nothing) {
    launched.timed_out = !launched.stopped;
    return launched;
  }
  streams.drain();
  launched.seconds = seconds_since(child.begun());
  const std::optional<Exit> exit = child.wait(std::chrono::milliseconds(0));
  launched.timed_out = !exit;
  if (exit) launched.exit = *exit;
  return launched;
}

Waiting::Waiting(const Minder& minder, Command command) : in_(make_pipe()), out_(make_pipe()) {
  const Fd nowhere = open_file("/dev/null", O_RDWR);
  command.stdin_fd = in_.read_end.get();
  command.stdout_fd = out_.write_end.get();
  command.stderr_fd = nowhere.get();
  child_.emplace(minder, command);
  in_.read_end.reset();
  out_.write_end.reset();
}

bool Waiting::ready(std::chrono::milliseconds deadline, StopSignals& signals) {
  const steady_clock::time_point until = steady_clock::now() + deadline;
  while (true) {
    std::array<pollfd, 2> fds{{{out_.read_end.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}}};
    const int count = ::poll(fds.data(), fds.size(), milliseconds_left(until));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || fds[1].revents != 0) return false;
    std::array<char, 64> buffer{};
    return ::read(out_.read_end.get(), buffer.data(), buffer.size()) > 0;
  }
}

void Waiting::end(std::chrono::milliseconds deadline) {
  in_.write_end.reset();
  if (child_ && !child_->wait(deadline)) child_.reset();
}

}  // namespace mlenv::compare
