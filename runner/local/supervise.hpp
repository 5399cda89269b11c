#pragma once
// One container's life under an OCI runtime, watched over by the stage.
#include "runner/local/first_report.hpp"
#include "runner/local/job_watch.hpp"
#include "runner/local/limits.hpp"
#include "runner/local/runtime.hpp"

namespace mlenv {

struct JobEnd {
  Exit exit;
  bool out_of_memory = false;  ///< the kernel killed a process of it for want of memory
  std::optional<keeper::Failed> not_started{};  ///< why the command did not begin
};

/// What is done while the job runs.
struct Meanwhile {
  std::function<void()> started;  ///< once it runs
  JobWatch::Exec exec;
  const LimitGroup* limits = nullptr;  ///< the container begins in it; may be absent
  std::function<void()> orphaned{};    ///< what is left to do when this process is killed
  int held = -1;                       ///< open until then (PidNamespace::watch_over)
};

/// Runs the bundle to its end with our standard streams, or those of `container`, and returns how
/// the job ended. Every process in `processes` is killed then, and the container's cgroups are
/// removed. Throws `run-failed`.
///
/// Without a terminal the runtime is asked to start the job and leave: streams are the job's own
/// (the runtime would put pipes between), and nothing but this process is left beside it. With a
/// terminal the runtime stays, as the master of the job's pseudo-terminal.
JobEnd supervise(const Runtime& runtime, const Container& container, PidNamespace& processes,
                 JobWatch& watch, const Meanwhile& meanwhile);

/// Removes the groups that the runtime made for the container, which nothing is in any more.
/// Whether they are gone.
bool remove_groups(const Runtime& runtime, const Container& container);
/// Groups that nothing is in any more; false where one stays.
bool remove_groups(const std::vector<fs::path>& folders);

}  // namespace mlenv
