#include "runner/local/supervise.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>

#include "base/error.hpp"
#include "base/log.hpp"

namespace mlenv {
namespace {

Exit reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw os_error(errno, "cannot wait for the job");
  }
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), true};
  return {WEXITSTATUS(status), false};
}

/// Without a start of the runtime where plain rmdir will do: that takes longer than all the rest.
void remove_cgroups(const Runtime& runtime, const Container& container) {
  if (container.identity != Identity::root) return;
  const std::optional<std::vector<fs::path>> folders = cgroup_folders(container);
  bool removed = folders.has_value();
  for (const fs::path& folder : folders.value_or(std::vector<fs::path>{})) {
    removed = (::rmdir(folder.c_str()) == 0 || errno == ENOENT) && removed;
  }
  if (removed) return;
  const Captured result =
      run_captured(delete_command(runtime, container), std::chrono::seconds(10));
  log::debug("deleting the container: status {} {}", result.exit.code, result.err);
}

Error no_container(const Runtime& runtime, const Exit& exit) {
  return failure("run-failed", "`{}` started no container", runtime.program.string())
      .because(fmt::format("it ended with status {}", exit.code))
      .hint("`--runtime` wants `runc`, `crun`, or a path to one");
}

Exit run_attached(const Runtime& runtime, const Container& container, PidNamespace& processes,
                  JobWatch& watch, const Meanwhile& meanwhile) {
  const Fd messages = open_file(messages_file(container), O_WRONLY | O_CREAT | O_APPEND);
  Command command = run_command(runtime, container);
  command.stderr_fd = messages.get();
  Child child{command};
  meanwhile.started();
  watch.while_running(child.pid(), processes, meanwhile.exec);
  const Exit exit = child.wait().value_or(Exit{});
  processes.end();
  const Exit explained = exit.code == 0 ? exit : explain_exit(exit, runtime, container);
  if (explained == exit && !fs::exists(pid_file(container))) throw no_container(runtime, exit);
  return explained;
}

Exit run_detached(const Runtime& runtime, const Container& container, PidNamespace& processes,
                  JobWatch& watch, const Meanwhile& meanwhile) {
  // The runtime's child becomes ours when the runtime leaves.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Child starter{run_command(runtime, container)};
  watch.while_starting(starter.pid(), processes);
  const Exit started = starter.wait().value_or(Exit{});
  if (started.code != 0) {
    processes.end();
    const Exit exit = explain_exit(started, runtime, container);
    if (exit == started) throw no_container(runtime, started);
    return exit;
  }
  const std::optional<std::string> number = read_file_if_exists(pid_file(container));
  if (!number) throw no_container(runtime, started);
  const auto job = static_cast<pid_t>(std::stol(*number));
  meanwhile.started();
  watch.while_running(job, processes, meanwhile.exec);
  const Exit exit = reap(job);
  processes.end();
  remove_cgroups(runtime, container);
  return exit;
}

}  // namespace

Exit supervise(const Runtime& runtime, const Container& container, PidNamespace& processes,
               JobWatch& watch, const Meanwhile& meanwhile) {
  return container.terminal ? run_attached(runtime, container, processes, watch, meanwhile)
                            : run_detached(runtime, container, processes, watch, meanwhile);
}

}  // namespace mlenv
