#pragma once
// The record of a job while it is driven: STORE/runs/ID as any run has it, with `ranks.json`,
// `preflight.json`, for each node a file of its facts in `nodes/`, and for each rank of each
// attempt a folder `ranks/ATTEMPT.RANK` with its log and its own record.
#include <map>
#include <memory>

#include "runner/after/after.hpp"
#include "runner/job/drive.hpp"
#include "runner/record/run_log.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv::job {

/// Where a rank's log (`log/`) and record (`run.json`, mlenv.run/1) are.
fs::path rank_folder(const fs::path& run_folder, std::uint64_t attempt, std::uint64_t rank);

/// Where the facts are that a node told when it was last made ready (mlenv.facts/1).
fs::path node_facts(const fs::path& run_folder, std::string node);

/// What a record that cannot be written costs is told once, through `DriveEvents::notice`; it ends
/// no job.
class JobRecording {
 public:
  /// In the folder of a record that is there. One that a job goes on with, as where a batch system
  /// put it back into its queue, keeps what it has of earlier attempts.
  JobRecording(fs::path folder, std::uint64_t most_log_bytes);

  /// `then`, and before that each notice is a remark in the job's own log, which `mlenv logs` shows
  /// among what ranks write.
  std::function<void(const std::string&)> noting(std::function<void(const std::string&)> then);
  /// The events, which are written down before they reach `then`; its `notice` is of noting().
  DriveEvents around(const DriveEvents& then);
  /// In what its nodes differ.
  void keep(const Agreement& nodes);
  /// Its end, and that mlenv itself failed.
  void end(RunRecorder& recorder, const RunOutcome& run);
  void gave_up(RunRecorder& recorder, const Error& error);

 private:
  void write();
  void keep_facts(const NodeState& node);
  RecordedRankEnd* rank_of(std::uint64_t attempt, std::uint64_t rank);
  void remark(const std::string& text);
  void planned(std::uint64_t attempt, const std::vector<Place>& places, const JobPlan& plan);
  void note_data(const NodeState& node);
  void note_storage(const NodeState& node);
  void line(std::uint64_t attempt, std::uint64_t rank, const std::string& text);
  void ended(const AttemptResult& attempt);
  template <class Work>
  void try_to(Work&& work);

  fs::path folder_;
  std::uint64_t most_log_bytes_;
  RecordedRanks ranks_;
  std::map<std::string, std::string> hosts_;                  ///< of nodes, as they call themselves
  std::map<std::uint64_t, std::unique_ptr<LogWriter>> logs_;  ///< of the attempt that goes on
  std::unique_ptr<LogWriter> remarks_;  ///< the job's own log, once there is something
  std::function<void(const std::string&)> notice_;
  bool failed_ = false;
};

/// A remark in the job's own log when nobody drives the job any more; a full disk goes without.
void remark_in_log(const fs::path& run_folder, std::uint64_t most_log_bytes,
                   const std::string& text);

/// How the job is recorded to have been asked for.
RecordedLaunch recorded_launch(const Job& job, const std::string& engine,
                               const std::vector<NodeOffer>& offers,
                               const std::optional<std::string>& code_digest);

/// Before that: waits for the runs that its start names (runner/after), its record queued
/// meanwhile. Nothing once they have ended well; else how the job ended before it began, which is
/// recorded. Throws `after-failed`.
std::optional<JobOutcome> wait_recorded(const fs::path& store, const RunStart& start,
                                        RunRecorder& recorder, WaitEvents events);

/// How a job ended, as a run of one command does.
RunOutcome as_run(const JobOutcome& job);

/// Drives it with its record, which `recorder` has begun: its end as a run's.
JobOutcome drive_recorded(Store& store, NodeStarter& starter, const DrivePlan& plan,
                          RunRecorder& recorder, DriveEvents events);

}  // namespace mlenv::job
