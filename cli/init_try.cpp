#include "cli/init_try.hpp"

#include <algorithm>
#include <set>

#include "cli/edited_recipe.hpp"
#include "cli/imports.hpp"
#include "cli/recipes_use.hpp"
#include "images/inspect/inspect.hpp"
#include "runner/check/import_remedy.hpp"

namespace mlenv::cli {
namespace {

constexpr int kMostTrials = 5;

/// Packages that are to be added, by the recipe's list.
struct Additions {
  std::set<std::string> system;
  std::set<std::string> packages;
  bool empty() const { return system.empty() && packages.empty(); }
};

/// What may mend these. The linker tells the first library that it lacks: `missing`, all of the
/// image's, spares a round for each other one.
Additions remedies_of(const std::vector<FailedImport>& failed,
                      const std::vector<MissingLibrary>& missing) {
  Additions all;
  bool lack = false;
  for (const FailedImport& one : failed) {
    const ImportRemedy remedy = remedy_of(one);
    if (!remedy.system.empty()) all.system.insert(remedy.system);
    if (!remedy.python.empty()) all.packages.insert(remedy.python);
    lack = lack || !one.library.empty();
  }
  for (const MissingLibrary& one : missing) {
    if (lack && one.is_wanted()) all.system.insert(debian_package_of(one.library));
  }
  return all;
}

/// Leaves out what was tried in earlier rounds, and remembers the rest.
void keep_new(std::set<std::string>& names, std::set<std::string>& tried) {
  std::erase_if(names, [&](const std::string& one) { return !tried.insert(one).second; });
}

Recipe with_added(Ui& ui, Recipe recipe, PackageList list, const std::set<std::string>& words) {
  if (words.empty()) return recipe;
  RecipeEdit edit = add_packages(recipe, list, {words.begin(), words.end()});
  for (const PackageEdit& change : edit.changes) {
    if (!change.none()) ui.say(edit_sentence(change, key_of(list)));
  }
  return std::move(edit.recipe);
}

}  // namespace

void try_recipe(Ui& ui, const fs::path& recipe) {
  Additions tried;
  for (int round = 1;; ++round) {
    const BuildOutcome built = built_here(ui, recipe, false);
    const ImportTrial trial = try_and_keep_imports(ui, built.result.image, built.lock);
    if (trial.failed.empty()) return;
    const ImageFacts facts = image_facts(ui.store(), built.result.image, ui.progress());
    Additions fresh = remedies_of(
        trial.failed, facts.missing_libraries.value.value_or(std::vector<MissingLibrary>{}));
    keep_new(fresh.system, tried.system);
    keep_new(fresh.packages, tried.packages);
    if (round == kMostTrials || fresh.empty()) throw failed_imports_error(trial, recipe.string());
    for (const FailedImport& one : trial.failed) ui.say(shown_failure(one));
    const Recipe before = read_recipe(recipe);
    const Recipe more = with_added(ui, with_added(ui, before, PackageList::system, fresh.system),
                                   PackageList::packages, fresh.packages);
    if (more.source == before.source) throw failed_imports_error(trial, recipe.string());
    try {
      const LockOutcome locked = relock(ui, before, more);
      for (const std::string& change : locked.changes) ui.say(change);
      if (locked.written) ui.say(lock_summary(more, locked));
    } catch (const Error& error) {  // a package that there is not
      ui.say(fmt::format("`{}` is as it was before: {}", recipe.string(), error.frames().front()));
      throw failed_imports_error(trial, recipe.string());
    }
  }
}

}  // namespace mlenv::cli
