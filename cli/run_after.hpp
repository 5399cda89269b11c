#pragma once
// `mlenv run --after`: a run that starts once others have ended well.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "runner/local/life.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace mlenv::cli {

void add_after_option(CLI::App& app, std::vector<std::string>& words);

/// The runs of those names, each once: ids of records, and of jobs that Slurm has. Throws `no-run`,
/// `ambiguous`, and `after-failed` for one that cannot end well any more.
std::vector<std::string> runs_before(const std::vector<std::string>& words);

/// Waits for them (runner/after), and says so. `waiting` as WaitEvents has it.
std::optional<RunOutcome> wait_before(Ui& ui, const std::vector<std::string>& ids, int control = -1,
                                      const std::function<void(bool)>& waiting = {});

/// What Slurm waits for, and what it does not know.
struct SlurmAfter {
  std::vector<std::string> words;     ///< for sbatch
  std::vector<std::string> in_slurm;  ///< the runs that those are of
  std::vector<std::string> others;    ///< runs that go on outside of Slurm
};
/// Throws `after-failed`.
SlurmAfter slurm_after(const fs::path& store, const std::vector<std::string>& ids);

/// Releases a job that Slurm holds once those runs have ended well, and cancels it when one cannot:
/// in the background. `folder` is the job's.
void release_after(const fs::path& folder, const std::vector<std::string>& ids);
/// That process: main() calls this before any thread exists and returns its value when it is
/// engaged (`mlenv __release FOLDER ID…`). nullopt: this is an ordinary start.
std::optional<int> release_main(int argc, char** argv);

}  // namespace mlenv::cli
