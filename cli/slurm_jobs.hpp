#pragma once
// Jobs that were submitted to Slurm and left there (`mlenv run -d --engine slurm`), as commands
// about runs find them: by the id that was answered, which is that of their folder in STORE/jobs.
// A record, with an id of its own, they have once they run, and another one each time that Slurm
// starts them again.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ui.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {

struct LeftJob {
  std::string id;
  fs::path folder;
  std::string slurm;   ///< Slurm's id
  std::string name;    ///< empty: none
  std::string record;  ///< the newest; empty: it has not begun
};

/// By id, the beginning or end of it alone (four letters at least), the name while it waits, or the
/// record that it has. nullopt: there is none such.
std::optional<LeftJob> left_job(const fs::path& store, std::string_view word);
/// Those that have not begun and of which Slurm says that they wait, oldest first.
std::vector<LeftJob> waiting_jobs(const fs::path& store);
/// As a record that has not begun: state `queued`.
RunRecord record_of(const LeftJob& job);

/// Id of the record that a word means: RunRecords::find(), or that of a job that was left to Slurm.
/// Of one that has not begun: with `wait` once it has, else it throws `run-queued`. Throws
/// `run-lost` where Slurm says that it is over and never began.
std::string begun_run(Ui& ui, const RunRecords& records, const std::string& word, bool wait);
/// One that waits or runs, which the word means or whose record it means.
std::optional<LeftJob> job_in_slurm(const RunRecords& records, const std::string& word);
/// Until Slurm says that it is over.
void wait_in_slurm(const LeftJob& job);

}  // namespace mlenv::cli
