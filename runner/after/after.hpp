#pragma once
// A run that starts once others have ended well (`--after`). Those are known by the ids of their
// records, or, where Slurm has them, of their folders (runner/job/job_folders.hpp).
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "runner/local/life.hpp"

namespace mlenv {

/// How a run stands for those that wait for it.
struct AwaitedRun {
  enum class State {
    goes_on,  ///< or is still queued
    well,     ///< it ended with 0, by itself
    never,    ///< it ended otherwise, or nobody is left who could end it well
  } state = State::never;
  std::string why{};    ///< of `never`: `ended with status 3`
  std::string slurm{};  ///< Slurm's id, where Slurm has it and it is not over
};
AwaitedRun look_at_run(const fs::path& store, const std::string& id);

/// Those that are not over, in their order. Throws `after-failed` where one cannot end well.
std::vector<std::string> not_over(const fs::path& store, const std::vector<std::string>& ids);
Error cannot_follow(const std::string& id, const AwaitedRun& run);

struct WaitEvents {
  std::function<void(const std::string&)> notice{};  ///< a sentence for the person
  /// It has to wait: true before, false after it, unless that fails.
  std::function<void(bool)> waiting{};
  /// Asked now and then; true: it need not wait any more, as if it had been told to end.
  std::function<bool()> is_needless{};
  /// A listening control socket (local/control.hpp), on which `mlenv stop` asks; -1: none.
  int control = -1;
};
/// Returns nothing once all have ended well, at once where they have. Told to end meanwhile, by a
/// signal or by `mlenv stop`, it returns the end of the run that was not started. Throws
/// `after-failed` as soon as one cannot end well any more.
std::optional<RunOutcome> wait_for_runs(const fs::path& store, const std::vector<std::string>& ids,
                                        const WaitEvents& events);

}  // namespace mlenv
