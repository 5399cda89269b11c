#pragma once
// Jobs that were submitted to Slurm and left there (`mlenv run -d --engine slurm`), as commands
// about runs find them: by the id that was answered, which is that of their folder in STORE/jobs.
// A record, with an id of its own, they have once they run. It goes on where Slurm puts the job
// back into its queue and starts it again; one that had ended for good has another one then.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ui.hpp"
#include "runner/launch/slurm_job.hpp"
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
/// Those of which Slurm says that they wait, for the first time or again, oldest first, as records
/// whose state is `queued`.
std::vector<RunRecord> waiting_jobs(const RunRecords& records);

/// Id of the record that a word means: RunRecords::find(), or that of a job that was left to Slurm.
/// Of one that has not begun: with `wait` once it has, else it throws `run-queued`. Throws
/// `run-lost` where Slurm says that it is over and never began.
std::string begun_run(Ui& ui, const RunRecords& records, const std::string& word, bool wait);
/// One that waits, for the first time or again, or runs, which the word means or whose record it
/// means.
std::optional<LeftJob> job_in_slurm(const RunRecords& records, const std::string& word);
/// Until Slurm says that it is over, or knows it no more. Throws `no-slurm` where it has not begun
/// and cannot be asked for.
void wait_in_slurm(const LeftJob& job);

/// Whether a run goes on: its mlenv lives, or it is a job that Slurm put back into its queue, where
/// it waits to go on with its record. Where Slurm cannot be asked only the former is known, which
/// is said.
class SlurmRunLife {
 public:
  SlurmRunLife(const Ui& ui, const RunRecords& records, std::string id);
  /// Slurm is asked now and then; until then what it said last holds.
  bool goes_on();
  void wait_for_end();

 private:
  bool waits_again();

  const Ui& ui_;
  const RunRecords& records_;
  std::string id_;
  std::optional<LeftJob> job_;  ///< whose record it is
  job::AskingPace pace_;
  std::chrono::steady_clock::time_point next_{};   ///< when Slurm is asked
  std::chrono::steady_clock::time_point heard_{};  ///< when it answered, or the run's mlenv lived
  bool told_ = false;
};

}  // namespace mlenv::cli
