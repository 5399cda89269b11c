#pragma once
// A job's output as JSON, a record on each line: what `mlenv --json run` of a job and `mlenv --json
// logs` print (tests/schema/log-line-1.json, job-end-1.json).
#include <optional>
#include <string>
#include <string_view>

#include "runner/job/drive.hpp"

namespace mlenv::job {

/// `mlenv.log-line/1` of a line as it lies in a rank's log, or in the job's own, which is of no
/// attempt and no rank; empty: it is none.
std::string log_line_json(std::optional<std::uint64_t> attempt, std::optional<std::uint64_t> rank,
                          std::string_view line);

/// `mlenv.job-end/1`: the last record. `id`: of the job's record.
std::string job_end_json(const std::string& id, const JobOutcome& outcome);
/// The same where mlenv itself failed, and why is told as an error; `attempts` had begun.
std::string job_end_json(const std::string& id, std::uint64_t attempts);
/// The same of a job that somebody else drove. `told`: what that one wrote last, or empty where it
/// wrote nothing; the status is `exit_code` whatever it says.
std::string job_end_json(const std::string& id, int exit_code, std::string_view told);

/// Whether a line is a `mlenv.job-end/1`.
bool is_job_end(std::string_view line);

}  // namespace mlenv::job
