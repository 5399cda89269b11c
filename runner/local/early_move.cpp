#include "runner/local/early_move.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>

#include "base/handle.hpp"
#include "runner/local/own_groups.hpp"

namespace mlenv {
namespace {

void move_to_own_group() noexcept {
  try {
    const Fd file{::open(own_procs_file(host_sources("/", "/tmp")).c_str(), O_WRONLY | O_CLOEXEC)};
    // `0` is whoever writes it (cgroups(7)).
    if (file) (void)!::write(file.get(), "0", 1);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the runtime waits, then
  }
}

}  // namespace

void move_groups_early() noexcept {
  const pid_t parent = ::fork();
  if (parent < 0) return;
  if (parent == 0) {
    // Its child is nobody's to wait for, and keeps nothing of ours open.
    if (::fork() == 0) {
      ::close_range(0, ~0U, 0);
      move_to_own_group();
    }
    ::_exit(0);
  }
  while (::waitpid(parent, nullptr, 0) < 0 && errno == EINTR) {
  }
}

fs::path own_procs_file(const FactSources& from) {
  const std::vector<fs::path> groups = all_own_groups(from);
  return groups.empty() ? fs::path{} : groups.front() / "cgroup.procs";
}

}  // namespace mlenv
