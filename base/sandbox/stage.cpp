#include "base/sandbox/stage.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/pidfd.hpp"
#include "base/sandbox/enter.hpp"
#include "base/sandbox/urgency.hpp"

namespace mlenv::sandbox {
namespace {

constexpr std::uint64_t kPlanLimit = std::uint64_t{256} << 20U;

Plan read_plan() {
  if (::lseek(kPlanFd, 0, SEEK_SET) != 0) throw os_error(errno, "cannot read the plan");
  FdSource source{kPlanFd};
  return decode_plan(read_all(source, kPlanLimit));
}

/// Ends this process as the program ended, signal included.
int end_like(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  (void)std::signal(number, SIG_DFL);
  ::kill(::getpid(), number);
  return 128 + number;
}

/// Waits for the keeper, or for the caller's end, which is the keeper's too.
int watch(pid_t keeper, const Fd& caller, const Fd& status_pipe) {
  const Fd keeper_fd = open_pidfd(keeper);
  std::array fds{pollfd{keeper_fd.get(), POLLIN, 0}, pollfd{caller.get(), POLLIN, 0}};
  while (fds[0].revents == 0) {
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    if (fds[1].revents != 0) ::kill(keeper, SIGKILL);
    if (fds[1].revents != 0) break;
  }
  int keeper_status = 0;
  while (::waitpid(keeper, &keeper_status, 0) < 0 && errno == EINTR) {
  }
  int status = 0;
  const ssize_t count = ::read(status_pipe.get(), &status, sizeof status);
  return end_like(count == static_cast<ssize_t>(sizeof status) ? status : keeper_status);
}

int stage(Plan plan, Fd& report) {
  ::prctl(PR_SET_NAME, "mlenv-sandbox");
  if (!plan.recorded) ::close(kResultFd);  // the caller's, if it is open
  const Fd caller = open_pidfd(plan.caller);
  if (::getppid() != plan.caller) return kOwnFailure;  // it ended before we could watch it
  Fd outside;
  if (!plan.command.overlay) outside = open_file(plan.command.root, O_PATH | O_DIRECTORY);
  ::umask(022);
  const bool watches = plan.recorded && plan.way == Way::namespaces;
  if (watches) set_urgent(Urgency::kept);  // the keeper's, for which the right is lost below
  if (plan.way == Way::namespaces) enter_namespaces(plan.command.network);
  if (plan.command.overlay) {
    plan.command.root = stack(*plan.command.overlay);
    outside = open_file(plan.command.root, O_PATH | O_DIRECTORY);
  }
  Pipe status = make_pipe();
  // Opened now: the keeper's pivot_root(2) changes our root too.
  const Fd null = open_file("/dev/null", O_RDWR);
  const pid_t self = ::getpid();
  const pid_t keeper = ::fork();
  if (keeper < 0) throw os_error(errno, "cannot start a process");
  if (keeper == 0) {
    // In a new process namespace our parent's id reads 0.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (const pid_t parent = ::getppid(); parent != 0 && parent != self) ::_exit(kOwnFailure);
    status.read_end.reset();
    run_keeper(plan, std::move(outside), std::move(report), std::move(status.write_end));
  }
  status.write_end.reset();
  report.reset();
  if (watches) set_urgent(Urgency::none);
  if (plan.recorded) ::close(kResultFd);
  // The standard streams belong to the program alone: its end must be their end.
  for (const int stream : {0, 1, 2}) ::dup2(null.get(), stream);
  return watch(keeper, caller, status.read_end);
}

}  // namespace

void report_error(int report, const Error& error) {
  const std::string bytes = encode(error);
  (void)!::write(report, bytes.data(), bytes.size());
}

int run_stage() {
  close_from(kResultFd + 1);  // by a folder of the caller's a program would leave the sandbox
  Fd report{kReportFd};
  for (const int fd : {kPlanFd, kReportFd, kResultFd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  try {
    return stage(read_plan(), report);
  } catch (const Error& error) {
    report_error(report.get(), error);
  } catch (const std::exception& error) {
    report_error(report.get(), Error{Kind::internal, "internal", error.what()});
  }
  return kOwnFailure;
}

}  // namespace mlenv::sandbox
