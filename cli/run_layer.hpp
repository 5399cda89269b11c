#pragma once
// The words of `mlenv run` about what it writes: kept, or begun from what another run kept.
#include <optional>
#include <string>

#include "cli/ui.hpp"
#include "runner/record/run_record.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace mlenv::cli {

struct LayerWords {
  bool keep = false;
  std::string from;  ///< a run; empty: none
};
void add_layer_options(CLI::App& app, LayerWords& words);

/// What else was asked for that does not go with it.
struct LayerContext {
  bool read_only = false;
  bool matrix = false;
  bool remove = false;  ///< `--rm`
  std::string runtime;
};
/// Throws `usage`.
void check_layer(const LayerWords& words, const LayerContext& context);

/// The layer that is meant, as the record has it; without an id: a new one. nullopt: none. Throws
/// `no-run`, `no-kept-layer` (usage).
std::optional<RecordedLayer> layer_of(const LayerWords& words);

/// How to go on, on standard error.
void say_layer(const Ui& ui, const std::string& run_id, const RunStart& start);

}  // namespace mlenv::cli
