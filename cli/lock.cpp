#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/interrupt.hpp"
#include "cli/recipes_use.hpp"

namespace mlenv::cli {
namespace {

struct Options {
  std::string recipe = "recipe.yaml";
  LockChoice choice;
};

int lock_command(const Options& options, Ui& ui) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const Recipe recipe = read_recipe(options.recipe);
  const LockOutcome outcome = provide_lock(ui, recipe, options.choice);
  if (ui.options.json) {
    nlohmann::json value = lock_as_json(recipe, outcome);
    value["schema"] = "mlenv.lock-result/1";
    ui.answer(canonical(value));
    return 0;
  }
  for (const std::string& change : outcome.changes) ui.answer(change);
  ui.say(lock_summary(recipe, outcome));
  return 0;
}

}  // namespace

Action declare_lock(CLI::App& app) {
  auto options = std::make_shared<Options>();
  take_word_of(app.add_option("RECIPE", options->recipe, "recipe file")->capture_default_str(),
               WordKind::recipe);
  app.add_flag("--upgrade", options->choice.upgrade,
               "resolve everything anew, to the newest that fits");
  app.add_flag("--locked", options->choice.locked,
               "only check that the lock matches (exit 3 when not)");
  app.footer("example: mlenv lock recipe.yaml");
  return [options](Ui& ui) { return lock_command(*options, ui); };
}

}  // namespace mlenv::cli
