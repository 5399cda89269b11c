#pragma once
// `--dry-run` of a job: what would be started.
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/run_job.hpp"
#include "runner/launch/node_starter.hpp"

namespace mlenv::cli {

/// What all ranks share: image, command, variables, mounts, limits, code, and how the job lives.
/// Secrets are masked, as in a record. For people: `image     small  sha256:…`, a line for each.
std::vector<std::string> summary_lines(const Ui& ui, const PreparedJob& job);
/// The same as `job` of mlenv.job-plan/1 and mlenv.job-script/1.
nlohmann::json summary_json(const Ui& ui, const PreparedJob& job);

/// That, and each rank, where addresses and ports are still unknown; the status.
int show_plan(const Ui& ui, const PreparedJob& job, const job::NodeStarter& starter);

}  // namespace mlenv::cli
