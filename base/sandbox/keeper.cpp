#include <dirent.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/limits.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <exception>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "base/confinement.hpp"
#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/sandbox/enter.hpp"
#include "base/sandbox/filter.hpp"
#include "base/sandbox/ownership.hpp"
#include "base/sandbox/process_limit.hpp"
#include "base/sandbox/stage.hpp"
#include "base/sandbox/supervisor.hpp"
#include "base/sandbox/urgency.hpp"
#include "base/text.hpp"

namespace mlenv::sandbox {
namespace {

constexpr rlim_t kProgramFiles = 4096;  // fixed: some programs close all that there could be

struct SocketPair {
  Fd ours;
  Fd theirs;
};

SocketPair make_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw os_error(errno, "cannot make a pair of sockets");
  }
  return {Fd{ends[0]}, Fd{ends[1]}};
}

/// One descriptor as ancillary data (unix(7)).
struct FdMessage {
  FdMessage() {
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  char byte = 0;
  iovec vector{&byte, 1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

void send_fd(int socket, int fd) {
  FdMessage message;
  cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
  if (::sendmsg(socket, &message.header, MSG_NOSIGNAL) != 1) {
    throw os_error(errno, "cannot hand the supervisor its descriptor");
  }
}

/// nullopt when the sender ended without sending.
std::optional<Fd> receive_fd(int socket) {
  FdMessage message;
  if (::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC) != 1) return std::nullopt;
  const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  if (control == nullptr || control->cmsg_type != SCM_RIGHTS) return std::nullopt;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(control), sizeof fd);
  return Fd{fd};
}

void set_signals_to_default() {
  for (int number = 1; number < NSIG; ++number) (void)std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

void set_limits() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_max = std::min(files.rlim_max, kProgramFiles);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 1024);
  ::setrlimit(RLIMIT_NOFILE, &files);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  rlimit processes{};
  ::getrlimit(RLIMIT_NPROC, &processes);
  processes.rlim_max = std::min(processes.rlim_max, kProgramProcesses);
  processes.rlim_cur = std::min(processes.rlim_cur, processes.rlim_max);
  ::setrlimit(RLIMIT_NPROC, &processes);
}

/// Those of a container, for all that is started from here on.
void drop_capabilities() {
  constexpr int kBeyond = 64;
  const auto kept = default_capabilities();
  for (int number = 0; number < kBeyond; ++number) {
    const bool keep = std::any_of(kept.begin(), kept.end(),
                                  [&](const Capability& one) { return one.number == number; });
    // Fails beyond the last one, and for whom none is to drop.
    if (!keep && ::prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0) return;
  }
}

/// Nobody's: the caller's session keyring holds logins. A kernel or container that forbids it has
/// the filter alone.
void leave_keyring() { (void)::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr); }

void start_program(const Plan& plan, const Fd& socket) {
  const SandboxCommand& command = plan.command;
  if (plan.way == Way::change_root) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  set_limits();
  set_signals_to_default();
  if (::chdir(command.folder.c_str()) != 0) {
    throw os_error(errno, "cannot enter `{}`", command.folder);
  }
  const std::vector<char*> argv = c_strings(command.argv);
  const std::vector<char*> env = c_strings(command.env);
  leave_keyring();
  drop_capabilities();
  const FilterTerms terms{plan.recorded, plan.way == Way::change_root};
  if (const Fd listener = install_filter(terms)) send_fd(socket.get(), listener.get());
  close_on_exec_from(kFirstBeyondStreams);
  if (command.argv.empty()) return;
  ::execve(argv[0], argv.data(), env.data());
  throw failure("cannot-start", "cannot start `{}`", command.argv[0]).because(errno_text(errno));
}

[[noreturn]] void run_program(const Plan& plan, const Fd& socket, const Fd& report) {
  try {
    start_program(plan, socket);
    ::_exit(0);
  } catch (const Error& error) {
    report_error(report.get(), error);
  } catch (const std::exception& error) {
    report_error(report.get(), Error{Kind::internal, "internal", error.what()});
  }
  ::_exit(127);
}

/// SIGCHLD as a descriptor.
Fd watch_children() {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &children, nullptr);
  Fd fd{::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd) throw os_error(errno, "cannot watch for the end of processes");
  return fd;
}

/// The program's status once it has ended.
std::optional<int> reap_all(int signals, pid_t program) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof info) > 0) {
  }
  std::optional<int> ended;
  int status = 0;
  for (pid_t pid = ::waitpid(-1, &status, WNOHANG); pid > 0;
       pid = ::waitpid(-1, &status, WNOHANG)) {
    if (pid == program) ended = status;
  }
  return ended;
}

/// Of those in a process namespace of its own, whose /proc is open as `proc`.
std::size_t count_processes(int proc) {
  const Fd folder{::openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!folder) return 0;
  std::size_t count = 0;
  std::array<char, 32768> buffer{};
  for (ssize_t got = 0; (got = ::getdents64(folder.get(), buffer.data(), buffer.size())) > 0;) {
    for (ssize_t at = 0; at < got;) {
      dirent64 entry{};
      std::memcpy(&entry, buffer.data() + at, offsetof(dirent64, d_name) + 1);
      if (is_digit(entry.d_name[0])) ++count;
      at += entry.d_reclen;
    }
  }
  return count;
}

/// False: nobody here can start a process, whoever's limit that is.
bool can_start_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  if (child < 0) return errno != EAGAIN;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return true;
}

/// Looks now and then how many processes there are: where nobody else counts, a program that forks
/// without end takes the machine; where somebody does (a control group, a limit of the user's that
/// other programs have a part of), it goes on at that limit for ever.
class ProcessWatch {
 public:
  explicit ProcessWatch(int proc) : proc_(proc) {}
  /// True: there are too many.
  bool look() {
    const auto now = Clock::now();
    if (now < next_) return false;
    next_ = now + kPause;
    const std::size_t count = count_processes(proc_);
    at_limit_ = count < kCrowd || can_start_process() ? 0 : at_limit_ + 1;
    return count > most_ || at_limit_ >= kMostAtLimit;
  }
  static constexpr std::chrono::milliseconds kPause{200};

 private:
  /// Fewer do not take all that there may be.
  static constexpr std::size_t kCrowd = 32;
  /// Looks in a row, five seconds: a program that starts as many as it can waits for some of them.
  static constexpr int kMostAtLimit = 25;
  using Clock = std::chrono::steady_clock;
  /// What the caller's own limit allows is reached a little below it.
  static std::size_t most() {
    rlimit own{};
    ::getrlimit(RLIMIT_NPROC, &own);
    return std::min<rlim_t>(kMostProcesses, own.rlim_cur - own.rlim_cur / 8);
  }
  int proc_;
  std::size_t most_ = most();
  int at_limit_ = 0;
  Clock::time_point next_ = Clock::now() + kPause;
};

/// Nothing, where it made too many processes: all of them are killed then.
std::optional<int> serve_until_end(pid_t program, int signals, Supervisor* supervisor,
                                   std::optional<ProcessWatch> processes) {
  const int pause = processes ? static_cast<int>(ProcessWatch::kPause.count()) : -1;
  while (true) {
    std::array fds{pollfd{signals, POLLIN, 0},
                   pollfd{supervisor != nullptr ? supervisor->listener() : -1, POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), pause);
    if (ready < 0 && errno != EINTR) throw os_error(errno, "cannot wait for the program");
    if (processes && processes->look()) return std::nullopt;
    if (ready <= 0) continue;
    if (supervisor != nullptr && (fds[1].revents & POLLIN) != 0) supervisor->serve();
    if (fds[0].revents == 0) continue;
    if (const std::optional<int> status = reap_all(signals, program)) return *status;
  }
}

/// Our children, as /proc has them (proc(5)).
std::vector<pid_t> children_of(int proc, pid_t parent) {
  std::vector<pid_t> children;
  const std::string name = fmt::format("{}/task/{}/children", parent, parent);
  const Fd file{::openat(proc, name.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return children;
  FdSource source{file.get()};
  std::istringstream list{read_all(source, std::uint64_t{1} << 20U)};
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

/// Ends what the program left running. As process 1 all others are ours; without a process
/// namespace we are their subreaper: each that ends hands us its children.
void end_others(const Plan& plan, int proc) {
  if (plan.way == Way::namespaces) ::kill(-1, SIGKILL);
  int status = 0;
  do {
    if (plan.way == Way::namespaces) continue;
    for (const pid_t child : children_of(proc, ::getpid())) ::kill(child, SIGKILL);
  } while (::waitpid(-1, &status, 0) > 0 || errno == EINTR);
}

Exit decode(int status) {
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), true};
  return {WEXITSTATUS(status), false};
}

void raise_file_limit() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

class Keeper {
 public:
  Keeper(const Plan& plan, const Fd& outside, Fd report)
      : plan_(plan), outside_(outside), scaffold_(outside.get()), report_(std::move(report)) {}

  int report() const { return report_.get(); }

  /// Until the program is started; errors go to the caller.
  void begin() {
    raise_file_limit();
    if (plan_.way == Way::change_root) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (plan_.recorded) ownership_.load(outside_.get(), plan_.initial);
    signals_ = watch_children();
    scaffold_.build(plan_.command, plan_.way);
    proc_ = scaffold_.take_proc();
    SocketPair sockets = make_sockets();
    program_ = ::fork();
    if (program_ < 0) throw os_error(errno, "cannot start a process");
    if (program_ == 0) run_program(plan_, sockets.theirs, report_);
    sockets.theirs.reset();
    if (!plan_.recorded) return;
    if (std::optional<Fd> listener = receive_fd(sockets.ours.get())) {
      supervisor_.emplace(*std::move(listener), proc_.get(), ownership_);
    }
  }

  /// Until it has ended; errors go into the result.
  int finish() {
    report_.reset();
    const Fd null = open_file("/dev/null", O_RDWR);
    for (const int stream : {0, 1, 2}) ::dup2(null.get(), stream);
    Result result;
    int status = kOwnFailure << 8;
    try {
      std::optional<ProcessWatch> processes;
      if (plan_.way == Way::namespaces) processes.emplace(proc_.get());
      const std::optional<int> ended = serve_until_end(
          program_, signals_.get(), supervisor_ ? &*supervisor_ : nullptr, processes);
      set_urgent(Urgency::none);
      if (ended) status = *ended;
      result.too_many = !ended;
      end_others(plan_, proc_.get());
      result.exit = decode(status);
      if (plan_.recorded) ownership_.collect(outside_.get(), result.owners, result.capabilities);
    } catch (const std::exception& error) {
      result.trouble = error.what();
    }
    scaffold_.remove();
    if (plan_.recorded) {
      const std::string bytes = encode(result);
      write_all(kResultFd, as_bytes(bytes));
    }
    return status;
  }

  void clear() { scaffold_.remove(); }

 private:
  const Plan& plan_;
  const Fd& outside_;
  Ownership ownership_;
  Scaffold scaffold_;
  Fd report_;
  Fd signals_;
  Fd proc_;
  pid_t program_ = -1;
  std::optional<Supervisor> supervisor_;
};

}  // namespace

void run_keeper(const Plan& plan, Fd outside, Fd report, Fd status) {
  // What the program sees of process 1 in /proc would lead out: `outside` is a descriptor of the
  // host's mount. The program's own execve makes it dumpable again (proc(5), ptrace(2)).
  ::prctl(PR_SET_DUMPABLE, 0);
  set_urgent(Urgency::itself);
  Keeper keeper{plan, outside, std::move(report)};
  try {
    keeper.begin();
    const int ended = keeper.finish();
    (void)!::write(status.get(), &ended, sizeof ended);
    ::_exit(0);
  } catch (const Error& error) {
    report_error(keeper.report(), error);
  } catch (const std::exception& error) {
    report_error(keeper.report(), Error{Kind::internal, "internal", error.what()});
  }
  keeper.clear();
  ::_exit(kOwnFailure);
}

}  // namespace mlenv::sandbox
