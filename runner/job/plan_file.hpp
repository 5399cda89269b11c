#pragma once
// A job as a file, for a controller that another program starts: in a batch system's allocation,
// hours later, on another machine that has the same store.
#include <string>
#include <string_view>

#include "runner/job/drive.hpp"

namespace mlenv::job {

struct PlanFile {
  std::string version;  ///< of the mlenv that wrote it
  std::string engine;
  fs::path store;
  bool json = false;  ///< what ranks write, as records (job_json.hpp)
  DrivePlan plan;     ///< without an id, which the record gives
};

/// Bytes of one build for itself: the version is checked, and nothing is promised between versions.
std::string render_plan_file(const PlanFile& file);
/// `version`: of this program. Throws `bad-job` (usage) for bytes of another one, or that are none;
/// `shown` names them.
PlanFile parse_plan_file(std::string_view bytes, std::string_view shown, std::string_view version);

}  // namespace mlenv::job
