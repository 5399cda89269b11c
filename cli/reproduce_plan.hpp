#pragma once
// A recorded run, made ready to run again.
#include <optional>
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "runner/local/run.hpp"
#include "runner/record/run_record.hpp"
#include "runner/repeat/outputs.hpp"

namespace mlenv::cli {

struct ReproduceOptions {
  std::string run;
  std::vector<std::string> env;      ///< what the record does not keep, or other values
  std::vector<std::string> command;  ///< where the record's holds masked words
  std::string runtime;               ///< empty: that of the run
  bool with_present_code = false;
};

struct Reproduction {
  Image image;
  LocalRun run;                   ///< nothing of the person's is written to; `scratch` holds it all
  RunStart start;                 ///< of the new record
  std::optional<CodeState> code;  ///< nothing: to be read from the project
  /// `commit` (in a folder of its own), `present` (as it was then), `present-changed`, `none`.
  std::string code_from;
  std::vector<PlacedOutput> outputs;  ///< places in the person's own folders
  std::vector<std::string> causes;    ///< what is not as it was then
};

/// Throws where it cannot be the same run: `cannot-reproduce` (no end, no outputs, a runtime that
/// cannot), what engine_for throws, `image-gone`,
/// `masked` (all that must be given again), `code-differs`, `mount-gone`.
Reproduction plan_reproduction(Ui& ui, const ReproduceOptions& options, const RunRecord& record,
                               const fs::path& scratch);

}  // namespace mlenv::cli
