#include "cli/run_repeat.hpp"

#include <CLI/CLI.hpp>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "cli/command_tree.hpp"
#include "cli/settings.hpp"
#include "cli/usage.hpp"
#include "runner/repeat/deterministic.hpp"

namespace mlenv::cli {
namespace {

/// What NumPy's old generator takes, which takes least.
constexpr std::uint64_t kLargestSeed = 0xffffffff;

}  // namespace

void add_repeat_options(CLI::App& app, RepeatOptions& options) {
  app.add_flag("--deterministic", options.deterministic,
               "fixed seeds, thread counts and algorithms: the same bits each time");
  app.add_option("--seed", options.seed, "of --deterministic; by default 0")
      ->check(CLI::Range(std::uint64_t{0}, kLargestSeed));
  CLI::Option* const outputs =
      app.add_option("--outputs", options.outputs, "a file or folder that is its result: recorded");
  take_one_word(outputs);
  take_word_of(outputs, WordKind::file);
}

void check_repeat(const RepeatOptions& options) {
  if (!options.seed || options.deterministic) return;
  throw usage_error("usage", "`--seed` is the seed of `--deterministic`, which is not given")
      .hint(fmt::format("add `--deterministic`, or set a variable of your own: `-e SEED={}`",
                        *options.seed));
}

RecordedDeterminism determinism(std::uint64_t seed) {
  RecordedDeterminism record{seed, {}, Digest::of(python_layer()).str()};
  for (const std::string& variable : deterministic_variables(seed)) {
    const std::size_t equals = variable.find('=');
    record.variables.push_back({variable.substr(0, equals), variable.substr(equals + 1)});
  }
  return record;
}

void record_determinism(const RepeatOptions& options, RunStart& start) {
  if (options.deterministic) start.deterministic = determinism(options.seed.value_or(0));
}

std::vector<PlacedOutput> declare_repeat(const RepeatOptions& options, const LocalRun& run,
                                         RunStart& start) {
  std::vector<PlacedOutput> outputs = placed_outputs(run, options.outputs);
  start.outputs = declared(run, outputs);
  record_determinism(options, start);
  return outputs;
}

LocalRun repeatable(LocalRun run, const RepeatOptions& options) {
  if (options.deterministic) make_deterministic(run, options.seed.value_or(0), all_variables());
  return run;
}

void say_outputs(const Ui& ui, const std::vector<RecordedOutput>& outputs) {
  for (const RecordedOutput& one : outputs) {
    if (one.kind == "absent") {
      ui.say(fmt::format("the run left no `{}`, which it declares as its output", one.path));
    } else if (one.kind == "unreadable") {
      ui.say(fmt::format("the output `{}` is not recorded: {}", one.path, one.why.value_or("")));
    }
  }
}

}  // namespace mlenv::cli
