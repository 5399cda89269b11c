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

/// Runs to the end. `outputs` reads what the run declares, after it. A record that cannot be
/// written stops no run: one line tells of it. `code` is the state of the code where it is known.
/// Throws as `run_local`.
RecordedRun run_recorded(Ui& ui, LocalRun run, const RunStart& start,
                         const std::function<std::vector<RecordedOutput>()>& outputs,
                         const std::optional<CodeState>& code = {});

}  // namespace mlenv::cli
