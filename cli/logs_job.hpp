#pragma once
// `mlenv logs` of a run on several nodes: what its ranks wrote, merged by time.
#include <optional>
#include <string>

#include "cli/ui.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {

struct JobLogOptions {
  bool follow = false;
  bool timestamps = false;
  std::optional<std::size_t> lines;   ///< so many, the last ones
  std::string since;                  ///< as lines begin; empty: all
  std::optional<std::uint64_t> rank;  ///< of one alone
};

/// Throws `no-rank` (usage) for one that the job never had.
void show_job_log(const Ui& ui, const RunRecords& records, const std::string& id,
                  const JobLogOptions& options);

}  // namespace mlenv::cli
