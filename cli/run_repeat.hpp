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

/// The switches of `--deterministic`, as the record has them.
RecordedDeterminism determinism(std::uint64_t seed);
/// What the record says of `--deterministic`, where it is given. Ranks of a job are started by
/// that.
void record_determinism(const RepeatOptions& options, RunStart& start);
/// What the record says of all of them; and where the outputs are. Throws `bad-run-output`.
std::vector<PlacedOutput> declare_repeat(const RepeatOptions& options, const LocalRun& run,
                                         RunStart& start);
/// `run` as these options have it, its scratch folder written to.
LocalRun repeatable(LocalRun run, const RepeatOptions& options);

/// A line for each output that is not there or cannot be read.
void say_outputs(const Ui& ui, const std::vector<RecordedOutput>& outputs);

}  // namespace mlenv::cli
