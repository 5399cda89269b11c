#pragma once
// STORE/jobs/ID: what a job needs that a batch system starts hours later: `job` (plan_file.hpp),
// `job.sh`, `out` (what it prints), `slurm` (its id there, by whoever submitted it, else by the job
// itself when it begins), `record` (its record's id, once it runs), `progress` (job_progress.hpp,
// until it ends for good), and `needs`.
//
// `needs` names, a digest on each line, the image and the code that no name of the store may lead
// to any more when the job's turn comes: `mlenv gc` keeps them.
//
// Of an array, many jobs of one script, STORE/jobs/ID holds what they share, and `variations`
// (variations.hpp); `out` and `record` of each are in a folder beside it, STORE/jobs/ID.NUMBER.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "runner/launch/slurm_job.hpp"

namespace mlenv::job {

/// Made for one job, readable by its owner alone (it holds the environment); taken away again
/// unless it is kept.
class JobFolder {
 public:
  explicit JobFolder(fs::path path);
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;
  ~JobFolder();
  const fs::path& path() const { return path_; }
  void need(const std::vector<std::string>& digests) const;
  /// From now on it is the job's.
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  bool kept_ = false;
};

fs::path jobs_folder(const fs::path& store);

/// Of one job of the array in `folder`.
fs::path task_folder(const fs::path& folder, std::uint64_t number);
inline constexpr std::string_view kVariationsFile = "variations";

/// Id of the record of the job in that folder; empty: it has not begun.
std::string record_of_job(const fs::path& folder);

/// Slurm's id of jobs. It is noted in `slurm` by whoever submitted the job, and by the job itself
/// when it begins; where the former was killed before that, Slurm's queue tells which job has that
/// folder's script.
class SlurmIds {
 public:
  /// Empty: Slurm has not taken it, or there is no such folder.
  std::string of(const fs::path& folder);
  /// Of one without a note, or whose note `id` is: in which state it is in the queue; empty: in
  /// none, or nobody can be asked.
  std::string state_of(const fs::path& folder, const std::string& id);
  /// Whether the queue could be asked, where it was.
  bool heard() const { return !asked_ || queue_.has_value(); }

 private:
  const QueuedScript* in_queue(const fs::path& script);

  bool asked_ = false;
  std::optional<ScriptQueue> queue_;  ///< asked once
};
std::string slurm_id_of_job(const fs::path& folder);
/// `name`: the person's, may be empty.
void note_slurm_id(const fs::path& folder, const std::string& id, const std::string& name);

/// What all jobs of that store need of it.
std::vector<Digest> needed_by_jobs(const fs::path& store);

/// Takes it away, as far as that can be done.
void remove_job_folder(const fs::path& folder) noexcept;

/// Takes away folders of jobs that ended more than a week ago, or whose record is gone, and that of
/// an array when none of its jobs has one any more. What cannot be taken away stays.
void sweep_job_folders(const fs::path& store, std::chrono::system_clock::time_point now);

}  // namespace mlenv::job
