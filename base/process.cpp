#include "base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/captured.hpp"
#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/spawn.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kCaptureLimit = std::size_t{64} << 20;
using Clock = std::chrono::steady_clock;

int poll_for(std::vector<pollfd>& fds, std::optional<Clock::time_point> until) {
  while (true) {
    int wait_ms = -1;
    if (until) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now());
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000'000));
    }
    const int ready = ::poll(fds.data(), fds.size(), wait_ms);
    if (ready >= 0) return ready;
    if (errno != EINTR) throw os_error(errno, "cannot wait for a process");
  }
}

}  // namespace

ssize_t write_quietly(int fd, std::string_view data) {
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t count = ::write(fd, data.data(), data.size());
  const int error = errno;
  // A reader that goes in the middle of a write leaves a signal and a short count.
  if (count < static_cast<ssize_t>(data.size())) {
    constexpr timespec kNow{};
    (void)::sigtimedwait(&pipe_signal, nullptr, &kNow);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return count;
}

Child::Child(const Command& command)
    : pid_(spawn(command, command.own_group ? Leads::group : Leads::nothing)),
      own_group_(command.own_group) {
  pidfd_ = Fd{static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))};
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      own_group_(other.own_group_),
      exit_(other.exit_) {}

Child::~Child() {
  if (pid_ < 0 || exit_) return;
  ::kill(own_group_ ? -pid_ : pid_, SIGKILL);
  // A process that waits in the kernel, for a driver that hangs say, dies when that lets it:
  // perhaps never.
  constexpr std::chrono::seconds kMostDying{3};
  constexpr int kPause = 10;  // milliseconds
  const auto until = Clock::now() + kMostDying;
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR) || Clock::now() >= until) return;
    pollfd dead{pidfd_.get(), POLLIN, 0};
    // It may be told as dead some time before it can be reaped.
    if (!pidfd_ || ::poll(&dead, 1, kPause) > 0) ::poll(nullptr, 0, 1);
  }
}

std::optional<Exit> Child::wait(std::optional<std::chrono::milliseconds> deadline) {
  if (exit_) return exit_;
  if (deadline && pidfd_) {
    std::vector<pollfd> fds{{pidfd_.get(), POLLIN, 0}};
    if (poll_for(fds, Clock::now() + *deadline) == 0) return std::nullopt;
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) throw os_error(errno, "cannot wait for process {}", pid_);
  }
  exit_ = decoded_exit(status);
  return exit_;
}

void Child::signal(int number) {
  if (pid_ > 0 && !exit_) ::kill(pid_, number);
}

namespace {

Error timed_out(const Command& command, std::chrono::milliseconds deadline) {
  return failure("timeout", "`{}` did not end within {} s", command.argv.at(0),
                 std::chrono::duration_cast<std::chrono::seconds>(deadline).count());
}

/// Takes what is there; closes the descriptor at its end.
void drain(Fd& fd, std::string& into) {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
  if (count <= 0) {
    fd.reset();
  } else if (into.size() < kCaptureLimit) {
    into.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// Gives what fits; closes the descriptor when all is given or nobody reads.
void feed(Fd& fd, std::string_view& input) {
  const ssize_t count = write_quietly(fd.get(), input);
  if (count > 0) input.remove_prefix(static_cast<std::size_t>(count));
  if (input.empty() || (count < 0 && errno != EAGAIN && errno != EINTR)) fd.reset();
}

int fd_or_none(const Fd& fd) { return fd ? fd.get() : -1; }

// Process ids; 0: none. A signal handler has no other way to them. One more than fit is not ended.
constexpr std::size_t kMostCaptured = 64;
std::array<std::atomic<pid_t>, kMostCaptured> captured_groups{};
static_assert(std::atomic<pid_t>::is_always_lock_free);

/// `group` is among them while it lives; its leader is not reaped before.
class Listed {
 public:
  explicit Listed(pid_t group) {
    for (std::atomic<pid_t>& slot : captured_groups) {
      pid_t none = 0;
      if (!slot.compare_exchange_strong(none, group)) continue;
      slot_ = &slot;
      return;
    }
  }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;
  ~Listed() { leave(); }
  void leave() {
    if (slot_ != nullptr) *slot_ = 0;
    slot_ = nullptr;
  }

 private:
  std::atomic<pid_t>* slot_ = nullptr;
};

}  // namespace

void end_captured() noexcept {
  for (const std::atomic<pid_t>& slot : captured_groups) {
    if (const pid_t group = slot; group > 0) ::kill(-group, SIGTERM);
  }
}

Captured run_captured(Command command, std::chrono::milliseconds deadline, std::string_view input) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Pipe in = make_pipe();
  command.stdin_fd = in.read_end.get();
  command.stdout_fd = out.write_end.get();
  command.stderr_fd = err.write_end.get();
  Child child{command};
  out.write_end.reset();
  err.write_end.reset();
  in.read_end.reset();
  ::fcntl(in.write_end.get(), F_SETFL, O_NONBLOCK);
  if (input.empty()) in.write_end.reset();

  Captured result;
  const auto until = Clock::now() + deadline;
  Listed listed{child.pid()};
  // What it started may keep the pipes open after its own end, and what writes without an end is
  // always ready to be read: neither is waited for.
  constexpr std::chrono::milliseconds kLook{200};
  constexpr std::chrono::seconds kGrace{2};
  std::optional<Clock::time_point> ended;
  while (out.read_end || err.read_end) {
    std::vector<pollfd> fds{{fd_or_none(out.read_end), POLLIN, 0},
                            {fd_or_none(err.read_end), POLLIN, 0},
                            {fd_or_none(in.write_end), POLLOUT, 0}};
    (void)poll_for(fds, std::min(until, Clock::now() + kLook));
    const Clock::time_point now = Clock::now();
    if (now >= until) throw timed_out(command, deadline);
    if (!ended && child.wait(std::chrono::milliseconds{0})) {
      ended = now;
      listed.leave();
    }
    if (ended && now - *ended >= kGrace) break;
    if (fds[0].revents != 0) drain(out.read_end, result.out);
    if (fds[1].revents != 0) drain(err.read_end, result.err);
    if (fds[2].revents != 0) feed(in.write_end, input);
  }
  listed.leave();
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  const std::optional<Exit> exit = child.wait(std::max(left, std::chrono::milliseconds{0}));
  if (!exit) throw timed_out(command, deadline);
  result.exit = *exit;
  return result;
}

void start_detached(Purpose purpose, const std::vector<std::string>& argv, int stdin_fd) {
  log::debug("starting {} in the background: {}", argv.at(0), purpose.name);
  const std::vector<char*> words = c_strings(argv);
  const Fd nowhere = open_file("/dev/null", O_RDWR);
  const pid_t pid = ::fork();
  if (pid == 0) {
    // Its parent ends at once: the kernel then reaps it, and no zombie stays with us. Nothing here
    // but system calls, for other threads may have held locks.
    ::setsid();
    ::dup2(stdin_fd >= 0 ? stdin_fd : nowhere.get(), 0);
    for (int fd = 1; fd < kFirstBeyondStreams; ++fd) ::dup2(nowhere.get(), fd);
    close_from(kFirstBeyondStreams);
    if (::fork() == 0) ::execv(words[0], words.data());
    ::_exit(0);
  }
  int status = 0;
  while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
}

std::optional<fs::path> find_program(std::string_view name) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  // Debian keeps runc and friends in sbin, which an ordinary user's PATH lacks.
  const std::string all = std::string(rest) + ":/usr/local/sbin:/usr/sbin:/sbin";
  rest = all;
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    fs::path candidate = fs::path(rest.substr(0, end)) / name;
    std::error_code error;
    if (fs::is_regular_file(candidate, error) && ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return std::nullopt;
}

fs::path own_executable() { return fs::read_symlink("/proc/self/exe"); }

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw os_error(errno, "cannot make a pipe");
  return {Fd{ends[0]}, Fd{ends[1]}};
}

bool drain(const Fd& pipe, std::chrono::steady_clock::time_point end,
           const std::function<void(std::string_view)>& take) {
  std::array<char, 65536> buffer{};
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now())
            .count();
    pollfd fd{pipe.get(), POLLIN, 0};
    const int ready =
        ::poll(&fd, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) throw os_error(errno, "cannot wait for output");
    if (ready == 0) return false;
    const ssize_t count = ::read(pipe.get(), buffer.data(), buffer.size());
    if (count <= 0) return true;
    take({buffer.data(), static_cast<std::size_t>(count)});
  }
}

}  // namespace mlenv
