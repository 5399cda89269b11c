#pragma once
// A run with its record, as `run` and `reproduce` have it.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "runner/local/run.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv::cli {

struct RecordedRun {
  RunOutcome outcome;
  std::string id;  ///< empty: it is not recorded
  std::vector<RecordedOutput> outputs;
};

/// May add to what is heard of the run. Id and folder of its record are empty where it has none.
using BeforeStart =
    std::function<void(const std::string& id, const fs::path& folder, RunEvents& events)>;

/// What is done around a run.
struct AroundRun {
  std::function<std::vector<RecordedOutput>()> outputs;  ///< reads what it declares, after it
  std::optional<CodeState> code{};                       ///< where it is known
  BeforeStart before_start{};
};

/// Runs to the end. A record that cannot be written stops no run: one line tells of it. Throws as
/// `run_local`.
RecordedRun run_recorded(Ui& ui, LocalRun run, const RunStart& start, const AroundRun& around);

}  // namespace mlenv::cli
