#pragma once
// Variations of one job (`--matrix`): what a job of one of them has that the others have not. What
// they share is one plan (drive.hpp), which is kept once.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/job/drive.hpp"

namespace mlenv::job {

struct JobVariation {
  RecordedVariation recorded;              ///< with the folder that its ranks see at /output
  std::vector<std::string> argv;           ///< with its values in it
  std::vector<std::string> recorded_argv;  ///< the same, secrets masked
  std::vector<std::string> env;            ///< `K=V`
  friend bool operator==(const JobVariation&, const JobVariation&) = default;
};

/// The plan for this one: with its values, its folder, and its number behind the job's name. What
/// ranks record of themselves names no variation: the job's own record does (variation_start()).
DrivePlan plan_of(DrivePlan shared, const JobVariation& variation);
/// The record of its job.
RunStart variation_start(RunStart start, const JobVariation& variation);

/// Bytes of one build for itself, as those of a plan file are.
std::string render_variations(const std::vector<JobVariation>& variations);
/// That of a number. Throws `bad-job` (usage) for bytes that are none or hold no such one; `shown`
/// names them.
JobVariation parse_variation(std::string_view bytes, std::uint64_t number, std::string_view shown);

}  // namespace mlenv::job
