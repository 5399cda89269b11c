#include "runner/compare/started.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"
#include "base/pidfd.hpp"
#include "base/text.hpp"

namespace mlenv::compare {
namespace {

/// What posix_spawn(3) takes; freed with the object.
class Setup {
 public:
  explicit Setup(const Command& command) {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    if (command.stdin_fd < 0) {
      ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    } else {
      ::posix_spawn_file_actions_adddup2(&actions, command.stdin_fd, 0);
    }
    ::posix_spawn_file_actions_adddup2(&actions, command.stdout_fd, 1);
    ::posix_spawn_file_actions_adddup2(&actions, command.stderr_fd, 2);
    if (!command.folder.empty()) {
      ::posix_spawn_file_actions_addchdir_np(&actions, command.folder.c_str());
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes,
                               static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID));
  }
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;
  ~Setup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

}  // namespace

Started::Started(const Command& command, Ending ending) : ending_(ending) {
  const Setup setup(command);
  std::vector<char*> argv = c_strings(command.argv);
  std::vector<char*> env;
  if (command.env) env = c_strings(*command.env);
  const int error = ::posix_spawnp(&pid_, argv.at(0), &setup.actions, &setup.attributes,
                                   argv.data(), command.env ? env.data() : environ);
  if (error != 0) {
    pid_ = -1;
    throw failure("cannot-start", "cannot start `{}`", command.argv.at(0))
        .because(errno_text(error));
  }
  ended_ = open_pidfd(pid_);
}

Started::Started(Started&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      ending_(other.ending_),
      ended_(std::move(other.ended_)) {}

Started::~Started() {
  if (pid_ < 0) return;
  constexpr std::chrono::milliseconds kMoment{10'000};
  if (ending_ == Ending::ask) {
    ::kill(pid_, SIGTERM);
    (void)has_ended(kMoment);
  }
  // The group's number is ours until its first process is waited for.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

bool Started::has_ended(std::chrono::milliseconds deadline) const {
  pollfd fd{ended_.get(), POLLIN, 0};
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto left = std::clamp<std::int64_t>(deadline.count(), 0, kMost);
  int ready = 0;
  do {
    ready = ::poll(&fd, 1, static_cast<int>(left));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

std::optional<Exit> Started::wait(std::chrono::milliseconds deadline) {
  if (!has_ended(deadline)) return std::nullopt;
  if (ending_ == Ending::kill) ::kill(-pid_, SIGKILL);
  return reap(std::exchange(pid_, -1));
}

}  // namespace mlenv::compare
