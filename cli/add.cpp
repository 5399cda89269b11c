// Packages more or less in a recipe: add, remove. The lock is made first, from the recipe as it
// would be; both files are written when that has worked.
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/edited_recipe.hpp"
#include "cli/interrupt.hpp"
#include "cli/recipes_use.hpp"
#include "recipes/recipe_edit.hpp"

namespace mlenv::cli {
namespace {

struct AddWords {
  std::vector<std::string> packages;
  std::string recipe = "recipe.yaml";
  bool system = false;
};
using Edit = RecipeEdit (*)(const Recipe&, PackageList, const std::vector<std::string>&);

void answer_edit_json(const AddWords& options, std::string_view key, const RecipeEdit& edit,
                      const std::optional<LockOutcome>& outcome, const Ui& ui) {
  nlohmann::json changes = nlohmann::json::array();
  for (const PackageEdit& change : edit.changes) {
    nlohmann::json item{{"package", change.package}, {"before", nullptr}, {"after", nullptr}};
    if (change.before) item["before"] = *change.before;
    if (change.after) item["after"] = *change.after;
    changes.push_back(std::move(item));
  }
  nlohmann::json lock = nullptr;
  if (outcome) lock = lock_as_json(edit.recipe, *outcome);
  ui.answer(canonical({{"schema", "mlenv.recipe-edit/1"},
                       {"recipe", options.recipe},
                       {"key", key},
                       {"packages", std::move(changes)},
                       {"lock", std::move(lock)}}));
}

int edit_command(const AddWords& options, Edit make, Ui& ui) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const Recipe recipe = read_recipe(options.recipe);
  const PackageList list = options.system ? PackageList::system : PackageList::packages;
  const std::string_view key = key_of(list);
  std::optional<LockOutcome> outcome;
  std::optional<RecipeEdit> edit;
  try {
    edit = make(recipe, list, options.packages);
    if (edit->recipe.source != recipe.source) outcome = relock(ui, recipe, edit->recipe);
  } catch (Error& error) {
    if (error.code() == "bad-package" || error.code() == "not-found") throw;
    error.while_doing(fmt::format("`{}` is left as it was", options.recipe));
    throw;
  }
  if (ui.options.json) {
    answer_edit_json(options, key, *edit, outcome, ui);
    return 0;
  }
  for (const PackageEdit& change : edit->changes) ui.say(edit_sentence(change, key));
  if (!outcome) return 0;
  ui.answer_lines(outcome->changes);
  ui.say(lock_summary(edit->recipe, *outcome));
  return 0;
}

Action declare(CLI::App& app, Edit make, const char* what) {
  auto options = std::make_shared<AddWords>();
  app.add_option("PACKAGE", options->packages, what)->required();
  take_word_of(app.add_option("--recipe", options->recipe, "recipe file")->capture_default_str(),
               WordKind::recipe);
  app.add_flag("--system", options->system, "of Debian: the recipe's `system`, not its `packages`");
  return [options, make](Ui& ui) { return edit_command(*options, make, ui); };
}

}  // namespace

Action declare_add(CLI::App& app) {
  app.footer("example: mlenv add 'transformers>=4.50' datasets");
  return declare(app, add_packages, "requirements, as `optax` or `optax>=0.2`");
}

Action declare_remove(CLI::App& app) {
  app.footer("example: mlenv remove datasets");
  return declare(app, remove_packages, "names of packages");
}

}  // namespace mlenv::cli
