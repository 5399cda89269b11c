#pragma once
// Options of `run` that make it repeatable: `--deterministic`, `--seed`, `--outputs`.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "runner/local/run.hpp"
#include "runner/record/run_record.hpp"
#include "runner/repeat/outputs.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace mlenv::cli {

struct RepeatOptions {
  bool deterministic = false;
  std::optional<std::uint64_t> seed;  ///< of `--deterministic`; nothing: 0
  std::vector<std::string> outputs;
};
void add_repeat_options(CLI::App& app, RepeatOptions& options);

/// Throws `usage` for options that mean nothing without each other.
void check_repeat(const RepeatOptions& options);

/// What the record says of them. Throws `bad-run-output`.
void declare_repeat(const RepeatOptions& options, const LocalRun& run, RunStart& start);
/// `run` as these options have it, its scratch folder written to, and `start` with what they set.
LocalRun repeatable(LocalRun run, const RepeatOptions& options, RunStart& start);

/// A line for each output that is not there or cannot be read.
void say_outputs(const Ui& ui, const std::vector<RecordedOutput>& outputs);

}  // namespace mlenv::cli
