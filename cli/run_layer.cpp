#include "cli/run_layer.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "cli/command_tree.hpp"
#include "cli/run_vm.hpp"
#include "cli/running.hpp"
#include "cli/usage.hpp"
#include "runner/engine/engine.hpp"

namespace mlenv::cli {

void add_layer_options(CLI::App& app, LayerWords& words) {
  app.add_flag("--keep", words.keep, "keep what it writes to the image, for --from of later runs");
  take_word_of(app.add_option("--from", words.from,
                              "start with what that run kept; with --keep, go on writing there")
                   ->type_name("RUN"),
               WordKind::run);
}

void check_layer(const LayerWords& words, const LayerContext& context) {
  if (!words.keep && words.from.empty()) return;
  const std::string option = words.keep ? "--keep" : "--from";
  if (words.keep && context.read_only) {
    throw usage_error("usage", "with `--read-only` nothing is written that `--keep` could keep")
        .hint("leave one of them out");
  }
  if (words.keep && context.remove) {
    throw usage_error("usage", "`--rm` throws away what `--keep` keeps")
        .hint("leave one of them out");
  }
  if (words.keep && context.matrix) {
    throw usage_error("usage", "one layer is written by one run at a time, and `--matrix` has many")
        .hint("leave `--keep` out; `--from RUN` lets all of them start from what a run kept");
  }
  if (context.runtime == kVmRuntime) {
    throw usage_error("usage", "`{}` is the built-in runtime's", option)
        .because("a virtual machine's disk is its own, and is thrown away")
        .hint("leave `--runtime vm` out");
  }
  if (is_engine(context.runtime)) {
    throw usage_error("usage", "`{}` is the built-in runtime's", option)
        .because(fmt::format("{} keeps containers in its own way", context.runtime))
        .hint(fmt::format("leave `--runtime {}` out", context.runtime));
  }
}

std::optional<RecordedLayer> layer_of(const LayerWords& words) {
  if (words.from.empty()) {
    return words.keep ? std::optional(RecordedLayer{"", std::nullopt, true}) : std::nullopt;
  }
  const RunRecords records = run_records();
  const std::string run = records.find(words.from);
  const std::optional<RecordedLayer> layer = records.read_brief(run).start.layer;
  if (!layer || !layer->kept) {
    throw usage_error("no-kept-layer", "run `{}` kept nothing", run)
        .hint(layer && layer->from
                  ? fmt::format("it started from what another one kept: `--from {}`", *layer->from)
                  : "what a run writes is kept with `mlenv run --keep`");
  }
  return RecordedLayer{layer->id, run, words.keep};
}

void say_layer(const Ui& ui, const std::string& run_id, const RunStart& start) {
  if (!start.layer || !start.layer->kept || run_id.empty()) return;
  ui.say(fmt::format("kept: `mlenv run --from {} …` starts with what this run wrote",
                     start.name.value_or(run_id)));
}

}  // namespace mlenv::cli
