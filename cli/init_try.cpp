#include "cli/init_try.hpp"

#include <algorithm>
#include <set>

#include "cli/answer_file.hpp"
#include "cli/imports.hpp"
#include "cli/recipes_use.hpp"
#include "images/inspect/inspect.hpp"
#include "recipes/recipe_edit.hpp"
#include "runner/check/import_remedy.hpp"

namespace mlenv::cli {
namespace {

constexpr int kMostTrials = 5;

/// What was added in this and earlier rounds: nothing is tried twice.
struct Additions {
  std::set<std::string> system;
  std::set<std::string> packages;

  /// The new ones among what may mend these. The linker tells the first library that it lacks:
  /// `missing`, all of the image's, spares a round for each other one.
  Additions take(const std::vector<FailedImport>& failed,
                 const std::vector<MissingLibrary>& missing) {
    Additions fresh;
    const bool lack = std::any_of(failed.begin(), failed.end(),
                                  [](const FailedImport& one) { return !one.library.empty(); });
    for (const MissingLibrary& one : missing) {
      if (!lack || one.from_driver || one.optional || !one.elsewhere.empty()) continue;
      const std::string package = debian_package_of(one.library);
      if (system.insert(package).second) fresh.system.insert(package);
    }
    for (const FailedImport& one : failed) {
      const ImportRemedy remedy = remedy_of(one);
      if (!remedy.system.empty() && system.insert(remedy.system).second) {
        fresh.system.insert(remedy.system);
      }
      if (!remedy.python.empty() && packages.insert(remedy.python).second) {
        fresh.packages.insert(remedy.python);
      }
    }
    return fresh;
  }
  bool empty() const { return system.empty() && packages.empty(); }
};

Recipe with_added(Ui& ui, Recipe recipe, PackageList list, const std::set<std::string>& words) {
  if (words.empty()) return recipe;
  RecipeEdit edit = add_packages(recipe, list, {words.begin(), words.end()});
  for (const PackageEdit& change : edit.changes) {
    if (change.none() || !change.after) continue;
    ui.say(fmt::format("added `{}` to `{}`", *change.after, key_of(list)));
  }
  return std::move(edit.recipe);
}

}  // namespace

void try_recipe(Ui& ui, const fs::path& recipe) {
  Additions added;
  for (int round = 1;; ++round) {
    const BuildOutcome built = built_here(ui, recipe, false);
    const ImportTrial trial = try_and_keep_imports(ui, built.result.image, built.lock);
    if (trial.failed.empty()) return;
    const ImageFacts facts = image_facts(ui.store(), built.result.image, ui.progress());
    const Additions fresh = added.take(
        trial.failed, facts.missing_libraries.value.value_or(std::vector<MissingLibrary>{}));
    if (round == kMostTrials || fresh.empty()) throw failed_imports_error(trial, recipe.string());
    for (const FailedImport& one : trial.failed) ui.say(shown_failure(one));
    const Recipe before = read_recipe(recipe);
    const Recipe more = with_added(ui, with_added(ui, before, PackageList::system, fresh.system),
                                   PackageList::packages, fresh.packages);
    if (more.source == before.source) throw failed_imports_error(trial, recipe.string());
    write_answer_file(recipe, more.source);
    try {
      provide_lock_aloud(ui, more, {});
    } catch (const Error& error) {
      // A package that there is not: what was there before locks.
      write_answer_file(recipe, before.source);
      ui.say(fmt::format("`{}` is as it was before: {}", recipe.string(), error.frames().front()));
      throw failed_imports_error(trial, recipe.string());
    }
  }
}

}  // namespace mlenv::cli
