#include "runner/local/stage_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/local/signals.hpp"

namespace mlenv {
namespace {

bool has_single_thread() {
  std::error_code error;
  const fs::directory_iterator tasks{"/proc/self/task", error};
  return !error && std::distance(begin(tasks), end(tasks)) == 1;
}

/// Takes what is there; false at its end.
bool take_more(int socket, std::string& bytes) {
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  while ((count = ::read(socket, buffer.data(), buffer.size())) < 0 && errno == EINTR) {
  }
  if (count <= 0) return false;
  bytes.append(buffer.data(), static_cast<std::size_t>(count));
  return true;
}

using std::chrono::steady_clock;

/// The stage ends the run by its own clock, and hears signals. It may be held up all the same, in
/// the kernel, by a disk or a program that it waits for: then it is given up.
class Patience {
 public:
  explicit Patience(const RunLife& life) : life_(life) {}
  void started() {
    if (life_.timeout && end_ == kNever)
      end_ = steady_clock::now() + *life_.timeout + life_.grace + kMostEnding;
  }
  /// What the run ends with, when it is over.
  std::optional<RunOutcome> is_over() const {
    const auto now = steady_clock::now();
    if (now >= end_) {
      RunOutcome late{{kTimedOutStatus, false}};
      late.ended_by = EndedBy::timeout;
      return late;
    }
    const auto asked = SignalForwarding::insistence();
    if (asked && now >= asked->since + kMostAsked)
      return RunOutcome{{kSignalBase + asked->signal, true}};
    return std::nullopt;
  }
  /// For poll(2): a signal may reach another thread than the one that waits.
  static constexpr int kLook = 1000;

 private:
  /// Beyond what the stage itself has (JobWatch), and what it has to put away.
  static constexpr std::chrono::seconds kMostEnding{45};
  static constexpr std::chrono::seconds kMostAsked{15};
  static constexpr steady_clock::time_point kNever = steady_clock::time_point::max();
  const RunLife& life_;
  steady_clock::time_point end_ = kNever;
};

struct Followed {
  std::string outcome;                 ///< what it said in the end
  std::optional<RunOutcome> given_up;  ///< it is held up
};

/// `fds` has the socket, then those of `events`.
void read_ready(const std::vector<pollfd>& fds, RunEvents& events) {
  for (std::size_t i = fds.size() - 1; i > 0; --i) {
    const auto reader = events.readers.begin() + static_cast<std::ptrdiff_t>(i) - 1;
    if (fds[i].revents != 0 && !reader->read()) events.readers.erase(reader);
  }
}

/// Until the stage closes its end: heeds its events, and returns what else it said. What `events`
/// has to read is read meanwhile.
Followed follow_stage(int socket, RunEvents& events, Patience& patience) {
  std::string outcome;
  std::string bytes;
  while (true) {
    std::vector<pollfd> fds{{socket, POLLIN, 0}};
    for (const RunEvents::Reader& reader : events.readers) fds.push_back({reader.fd, POLLIN, 0});
    if (::poll(fds.data(), fds.size(), Patience::kLook) < 0) {
      if (errno == EINTR) continue;
      throw os_error(errno, "cannot wait for the container");
    }
    if (const auto over = patience.is_over()) return {"", over};
    read_ready(fds, events);
    if (fds[0].revents == 0) continue;
    if (!take_more(socket, bytes)) return {outcome, std::nullopt};
    while (std::optional<std::string> frame = take_frame(bytes)) {
      if (take_event(*frame, events)) {
        patience.started();
      } else {
        outcome = std::move(*frame);
      }
    }
  }
}

/// The same descriptors beyond those numbers that a new process gets them at.
Fd out_of_the_way(int fd) {
  constexpr int kFirstFree = 16;
  Fd copy{fd >= 0 ? ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree) : -1};
  if (fd >= 0 && !copy) throw os_error(errno, "cannot copy a descriptor");
  return copy;
}

}  // namespace

StageProcess::StageProcess(const LocalRun& run, std::vector<std::string> before) : life_(run.life) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw os_error(errno, "cannot make a socket");
  }
  socket_ = Fd{ends[0]};
  Fd theirs{ends[1]};
  if (before.empty() && has_single_thread()) {
    copy_ourselves(run, std::move(theirs));
  } else {
    start_again(run, std::move(before), std::move(theirs));
  }
}

void StageProcess::copy_ourselves(const LocalRun& run, Fd theirs) {
  // The stage picks signals up from a signalfd; until it does, they wait.
  const sigset_t held = forwarded_signals();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &held, &before);
  pid_ = ::fork();
  if (pid_ == 0) {
    socket_.reset();
    if (!run.terminal) ::setpgid(0, 0);
    ::_exit(run_stage(run, theirs.get()));
  }
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid_ < 0) throw os_error(error, "cannot start a process");
}

void StageProcess::start_again(const LocalRun& run, std::vector<std::string> argv, Fd theirs) {
  Command command{Purpose{"run-stage"}};
  command.argv = std::move(argv);
  command.argv.insert(command.argv.end(), {own_executable().string(), std::string(kStageArgument)});
  command.stdin_fd = 0;
  const Fd socket = out_of_the_way(theirs.get());
  const Fd control = out_of_the_way(run.fds.control);
  const Fd out = out_of_the_way(run.fds.out);
  const Fd err = out_of_the_way(run.fds.err);
  const Fd layer = out_of_the_way(run.fds.layer);
  command.extra_fds = {{socket.get(), kStageSocket}};
  if (control) command.extra_fds.emplace_back(control.get(), kStageControl);
  if (out) command.extra_fds.emplace_back(out.get(), kStageOut);
  if (err) command.extra_fds.emplace_back(err.get(), kStageErr);
  if (layer) command.extra_fds.emplace_back(layer.get(), kStageLayer);
  command.own_group = !run.terminal;
  again_.emplace(command);
  theirs.reset();
  pid_ = again_->pid();
  send_all(socket_.get(), render_request(run));
}

Exit StageProcess::reap() {
  const pid_t pid = std::exchange(pid_, -1);
  if (again_) return again_->wait().value_or(Exit{});
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), true};
  return {WEXITSTATUS(status), false};
}

/// Killed, and what it looked after with it; not waited for, where the kernel keeps it.
void StageProcess::leave() {
  socket_.reset();
  const pid_t pid = std::exchange(pid_, -1);
  ::kill(pid, SIGKILL);
  constexpr int kTries = 200;
  constexpr int kPause = 10;  // milliseconds
  for (int i = 0; i < kTries; ++i) {
    if (again_ ? again_->wait(std::chrono::milliseconds{0}).has_value()
               : ::waitpid(pid, nullptr, WNOHANG) != 0) {
      return;
    }
    ::poll(nullptr, 0, kPause);
  }
}

StageProcess::~StageProcess() {
  socket_.reset();
  if (pid_ < 0) return;
  try {
    (void)reap();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): there is nobody to tell any more
  }
}

RunOutcome StageProcess::wait(RunEvents events) {
  Patience patience{life_};
  const auto [outcome, given_up] = follow_stage(socket_.get(), events, patience);
  if (given_up) {
    leave();
    return *given_up;
  }
  const Exit exit = reap();
  // Whoever wrote there is gone by now, so that what is in a pipe is all that there will be.
  for (const RunEvents::Reader& reader : events.readers) {
    ::fcntl(reader.fd, F_SETFL, O_NONBLOCK);
    while (reader.read()) {
    }
  }
  if (!outcome.empty()) return parse_stage_outcome(outcome).run;
  if (exit.signalled) return {exit};
  throw failure("run-failed", "the process around the container ended with status {}", exit.code);
}

}  // namespace mlenv
