#include "runner/local/supervise.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/pidfd.hpp"
#include "runner/local/limits.hpp"

namespace mlenv {

bool remove_groups(const Runtime& runtime, const Container& container) {
  if (container.identity != Identity::root) return true;
  const std::optional<std::vector<fs::path>> folders = cgroup_folders(runtime, container);
  return folders && remove_groups(*folders);
}

bool remove_groups(const std::vector<fs::path>& folders) {
  bool removed = true;
  for (const fs::path& folder : folders) {
    removed = remove_group(folder) && removed;
  }
  return removed;
}

namespace {

/// Without a start of the runtime where plain rmdir will do: that takes longer than all the rest.
void remove_cgroups(const Runtime& runtime, const Container& container) {
  if (remove_groups(runtime, container)) return;
  const Captured result =
      run_captured(delete_command(runtime, container), std::chrono::seconds(10));
  log::debug("deleting the container: status {} {}", result.exit.code, result.err);
}

/// Version 1 counts in the innermost group, version 2 in all above it.
bool is_out_of_memory(const Runtime& runtime, const Container& container,
                      const LimitGroup* limits) {
  if (limits != nullptr && limits->killed_for_memory()) return true;
  for (const fs::path& folder :
       cgroup_folders(runtime, container).value_or(std::vector<fs::path>{})) {
    if (memory_kills(folder) > 0) return true;
  }
  return false;
}

Error no_container(const Runtime& runtime, const Exit& exit, const LimitGroup* limits) {
  Error error = failure("run-failed", "`{}` started no container", runtime.program.string())
                    .because(fmt::format("it ended with status {}", exit.code));
  if (limits != nullptr) limits->explain(error);
  return std::move(error).hint("`--runtime` wants `runc`, `crun`, or a path to one");
}

/// Killed, and not gone: the kernel takes it away when that lets it.
JobEnd left_behind(PidNamespace& processes) {
  processes.leave();
  return {Exit{128 + SIGKILL, true}};
}

/// The runtime, once the namespace is ready for it.
Child start_runtime(Command command, const Meanwhile& meanwhile, PidNamespace& processes,
                    FirstReport& report) {
  report.go_with(command);
  processes.settle();
  Child runtime = start_within(meanwhile.limits, command);
  report.is_on_its_way();
  // Beside the runtime, which takes far longer to make anything.
  processes.watch_over(meanwhile.orphaned, meanwhile.held);
  return runtime;
}

JobEnd run_attached(const Runtime& runtime, const Container& container, PidNamespace& processes,
                    JobWatch& watch, const Meanwhile& meanwhile) {
  const Fd messages = open_file(messages_file(container), O_WRONLY | O_CREAT | O_APPEND);
  Command command = run_command(runtime, container);
  command.stderr_fd = messages.get();
  FirstReport report;
  Child child = start_runtime(std::move(command), meanwhile, processes, report);
  meanwhile.started();
  watch.while_running(child.pid(), processes, meanwhile.exec);
  if (watch.gave_up()) return left_behind(processes);
  const Exit exit = child.wait().value_or(Exit{});
  processes.end();
  const Exit explained = exit.code == 0 ? exit : explain_exit(exit, runtime, container);
  if (explained == exit && !fs::exists(pid_file(container)))
    throw no_container(runtime, exit, meanwhile.limits);
  // The runtime has removed its own groups.
  return {explained, meanwhile.limits != nullptr && meanwhile.limits->killed_for_memory(),
          report.look()};
}

JobEnd run_detached(const Runtime& runtime, const Container& container, PidNamespace& processes,
                    JobWatch& watch, const Meanwhile& meanwhile) {
  // The runtime's child becomes ours when the runtime leaves.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  FirstReport report;
  Child starter = start_runtime(run_command(runtime, container), meanwhile, processes, report);
  watch.while_starting(starter.pid(), processes);
  if (watch.gave_up()) return left_behind(processes);
  const Exit started = starter.wait().value_or(Exit{});
  if (watch.start_was_late()) {
    throw failure("run-failed", "`{}` did not start the container within ten minutes",
                  runtime.program.string())
        .because("it was killed");
  }
  if (started.code != 0) {
    processes.end();
    if (runtime.is_crun) remove_cgroups(runtime, container);
    // Somebody ended the run while the container was on its way; that is no failure of the runtime.
    if (watch.must_end()) return {Exit{128 + SIGKILL, true}};
    const Exit exit = explain_exit(started, runtime, container);
    if (exit == started) throw no_container(runtime, started, meanwhile.limits);
    return {exit};
  }
  const std::optional<std::string> number = read_file_if_exists(pid_file(container));
  if (!number) throw no_container(runtime, started, meanwhile.limits);
  const auto job = static_cast<pid_t>(std::stol(*number));
  if (!report.wait()) {
    meanwhile.started();
    watch.while_running(job, processes, meanwhile.exec);
    if (watch.gave_up()) return left_behind(processes);
  }
  const Exit exit = reap(job);
  processes.end();
  const bool out_of_memory = is_out_of_memory(runtime, container, meanwhile.limits);
  remove_cgroups(runtime, container);
  return {exit, out_of_memory, report.look()};
}

}  // namespace

JobEnd supervise(const Runtime& runtime, const Container& container, PidNamespace& processes,
                 JobWatch& watch, const Meanwhile& meanwhile) {
  return container.terminal ? run_attached(runtime, container, processes, watch, meanwhile)
                            : run_detached(runtime, container, processes, watch, meanwhile);
}

}  // namespace mlenv
