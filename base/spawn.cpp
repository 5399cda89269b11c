#include "base/spawn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace mlenv {
namespace {

class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  std::vector<Fd> copies;  ///< closed with it
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

/// Above the standard streams those that are named, and no others: not even those of a library that
/// opens without O_CLOEXEC.
void pass_on(SpawnSetup& setup, const std::vector<std::pair<int, int>>& named) {
  int last = kFirstBeyondStreams - 1;
  for (const auto& [ours, theirs] : named) last = std::max(last, theirs);
  // Out of the way first: one of ours may lie where another is to go.
  for (const auto& [ours, theirs] : named) {
    if (ours > last) continue;
    setup.copies.emplace_back(::fcntl(ours, F_DUPFD_CLOEXEC, last + 1));
    if (!setup.copies.back()) throw os_error(errno, "cannot copy a descriptor");
  }
  auto copy = setup.copies.begin();
  for (const auto& [ours, theirs] : named) {
    const int from = ours > last ? ours : (copy++)->get();
    ::posix_spawn_file_actions_adddup2(&setup.actions, from, theirs);
  }
  for (int fd = kFirstBeyondStreams; fd < last; ++fd) {
    const bool is_named =
        std::any_of(named.begin(), named.end(), [fd](const auto& one) { return one.second == fd; });
    if (!is_named) ::posix_spawn_file_actions_addclose(&setup.actions, fd);
  }
  ::posix_spawn_file_actions_addclosefrom_np(&setup.actions, last + 1);
}

void redirect(SpawnSetup& setup, const Command& command) {
  if (command.stdin_fd < 0) {
    ::posix_spawn_file_actions_addopen(&setup.actions, 0, "/dev/null", O_RDONLY, 0);
  } else {
    ::posix_spawn_file_actions_adddup2(&setup.actions, command.stdin_fd, 0);
  }
  ::posix_spawn_file_actions_adddup2(&setup.actions, command.stdout_fd, 1);
  ::posix_spawn_file_actions_adddup2(&setup.actions, command.stderr_fd, 2);
  pass_on(setup, command.extra_fds);
  if (!command.folder.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&setup.actions, command.folder.c_str());
  }
}

int flags_of(Leads leads) {
  constexpr int kAlways = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (leads == Leads::group) return kAlways | POSIX_SPAWN_SETPGROUP;
  return leads == Leads::session ? kAlways | POSIX_SPAWN_SETSID : kAlways;
}

void set_attributes(SpawnSetup& setup, Leads leads) {
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&setup.attributes, &none);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&setup.attributes, &defaults);
  ::posix_spawnattr_setpgroup(&setup.attributes, 0);
  ::posix_spawnattr_setflags(&setup.attributes, static_cast<short>(flags_of(leads)));
}

}  // namespace

pid_t spawn(const Command& command, Leads leads) {
  log::debug("starting {}: {}", command.argv.at(0), command.purpose.name);
  SpawnSetup setup;
  redirect(setup, command);
  set_attributes(setup, leads);
  std::vector<char*> argv = c_strings(command.argv);
  std::vector<char*> env;
  if (command.env) env = c_strings(*command.env);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv.at(0), &setup.actions, &setup.attributes, argv.data(),
                                   command.env ? env.data() : environ);
  if (error != 0) {
    throw failure("cannot-start", "cannot start `{}`", command.argv.at(0))
        .because(errno_text(error));
  }
  return pid;
}

Exit decoded_exit(int status) {
  if (WIFSIGNALED(status)) return {kSignalBase + WTERMSIG(status), true};
  return {WEXITSTATUS(status), false};
}

}  // namespace mlenv
