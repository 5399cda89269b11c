#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/interrupt.hpp"
#include "cli/recipes_use.hpp"

namespace mlenv::cli {
namespace {

struct LockWords {
  std::string recipe = "recipe.yaml";
  std::vector<std::string> upgrade;
  LockChoice choice;
};

/// `--upgrade recipe.yaml` upgrades everything of that recipe: no package is called so.
void take_upgrade(LockWords& options) {
  std::vector<std::string>& names = options.upgrade;
  std::erase_if(names, [](const std::string& name) { return name.empty() || name == "true"; });
  const auto recipe = std::find_if(names.begin(), names.end(), is_recipe_path);
  if (recipe != names.end()) {
    options.recipe = *recipe;
    names.erase(recipe);
  }
  options.choice.upgrade = names.empty();
  options.choice.moved_names = names;
}

/// What of the recipe's `gpus` only the build can tell.
void say_unknown_code(const LockSet& locks, Ui& ui) {
  const bool known = std::none_of(locks.locks.begin(), locks.locks.end(), [](const Lock& lock) {
    return !lock.request.gpus.empty() && lock.cuda && lock.cuda->architectures.empty();
  });
  if (known) return;
  ui.say(
      "note: which GPUs these wheels hold code for is not known before they are read; "
      "`mlenv build` reads them and fails where code for one of `gpus` is missing");
}

int lock_command(const LockWords& options, Ui& ui) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const Recipe recipe = read_recipe(options.recipe);
  const LockOutcome outcome = provide_lock(ui, recipe, options.choice);
  say_unknown_code(outcome.locks, ui);
  if (ui.options.json) {
    nlohmann::json value = lock_as_json(recipe, outcome);
    value["schema"] = "mlenv.lock-result/1";
    ui.answer(canonical(value));
    return 0;
  }
  ui.answer_lines(outcome.changes);
  ui.say(lock_summary(recipe, outcome));
  return 0;
}

}  // namespace

Action declare_lock(CLI::App& app) {
  auto options = std::make_shared<LockWords>();
  take_word_of(app.add_option("RECIPE", options->recipe, "recipe file")->capture_default_str(),
               WordKind::recipe);
  auto* upgrade = app.add_option("--upgrade", options->upgrade,
                                 "resolve everything anew, or only these Python packages");
  take_word_of(upgrade, WordKind::recipe);
  upgrade->type_name("[NAME]")->expected(0, CLI::detail::expected_max_vector_size);
  app.add_flag("--locked", options->choice.locked,
               "only check that the lock matches (exit 3 when not)");
  app.footer("example: mlenv lock recipe.yaml");
  return [options, upgrade](Ui& ui) {
    if (upgrade->count() > 0) take_upgrade(*options);
    return lock_command(*options, ui);
  };
}

}  // namespace mlenv::cli
