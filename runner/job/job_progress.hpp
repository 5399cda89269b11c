#pragma once
// How far a job has come (JobProgress), in the folder of a job that a batch system may put back
// into its queue (job_folders.hpp): whoever drives it next goes on from there.
#include <optional>

#include "base/files.hpp"
#include "runner/job/drive.hpp"

namespace mlenv::job {

/// nullopt: nobody has driven it before, or it ended for good; or the file is damaged.
std::optional<JobProgress> read_progress(const fs::path& folder);
/// What cannot be written is left as it was.
void write_progress(const fs::path& folder, const JobProgress& progress) noexcept;
void forget_progress(const fs::path& folder) noexcept;

}  // namespace mlenv::job
