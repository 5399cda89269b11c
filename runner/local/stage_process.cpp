#include "runner/local/stage_process.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"
#include "runner/local/signals.hpp"

namespace mlenv {
namespace {

bool has_single_thread() {
  std::error_code error;
  const fs::directory_iterator tasks{"/proc/self/task", error};
  return !error && std::distance(begin(tasks), end(tasks)) == 1;
}

/// All of it, then the end of file; stops quietly when the other side is gone (its end tells).
void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  ::shutdown(socket, SHUT_WR);
}

}  // namespace

StageProcess::StageProcess(const LocalRun& run, std::vector<std::string> before) {
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
  Command command;
  command.argv = std::move(argv);
  command.argv.insert(command.argv.end(), {own_executable().string(), std::string(kStageArgument)});
  command.stdin_fd = 0;
  command.extra_fds = {{theirs.get(), kStageSocket}};
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

StageProcess::~StageProcess() {
  socket_.reset();
  if (pid_ < 0) return;
  try {
    (void)reap();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): there is nobody to tell any more
  }
}

JobEnd StageProcess::wait() {
  FdSource source{socket_.get()};
  const std::string outcome = read_all(source, std::uint64_t{1} << 20);
  const Exit exit = reap();
  if (!outcome.empty()) return parse_outcome(outcome);
  if (exit.signalled) return {exit};
  throw failure("run-failed", "the process around the container ended with status {}", exit.code);
}

}  // namespace mlenv
