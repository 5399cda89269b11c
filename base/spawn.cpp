#include "base/spawn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

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
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

void redirect(SpawnSetup& setup, const Command& command) {
  if (command.stdin_fd < 0) {
    ::posix_spawn_file_actions_addopen(&setup.actions, 0, "/dev/null", O_RDONLY, 0);
  } else {
    ::posix_spawn_file_actions_adddup2(&setup.actions, command.stdin_fd, 0);
  }
  ::posix_spawn_file_actions_adddup2(&setup.actions, command.stdout_fd, 1);
  ::posix_spawn_file_actions_adddup2(&setup.actions, command.stderr_fd, 2);
  for (const auto& [ours, theirs] : command.extra_fds) {
    ::posix_spawn_file_actions_adddup2(&setup.actions, ours, theirs);
  }
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
  constexpr int kSignalled = 128;
  if (WIFSIGNALED(status)) return {kSignalled + WTERMSIG(status), true};
  return {WEXITSTATUS(status), false};
}

}  // namespace mlenv
