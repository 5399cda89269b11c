#include "cli/init_try.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "builder/imports/project_trial.hpp"
#include "cli/answer_file.hpp"
#include "cli/edited_recipe.hpp"
#include "cli/imports.hpp"
#include "cli/recipes_use.hpp"
#include "images/inspect/inspect.hpp"
#include "recipes/recipe_bounds.hpp"
#include "recipes/requirement_name.hpp"
#include "recipes/text.hpp"
#include "runner/check/import_remedy.hpp"

namespace mlenv::cli {
namespace {

constexpr int kMostTrials = 5;
constexpr int kMostFailedBuilds = 12;

/// What is to be added, by the recipe's key.
struct Additions {
  std::set<std::string> system;
  std::set<std::string> packages;
  std::set<std::string> constraints;
  bool empty() const { return system.empty() && packages.empty() && constraints.empty(); }
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
    if (!remedy.constraint.empty()) all.constraints.insert(remedy.constraint);
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

/// The rounds of one trial, and what they found so far.
class Trial {
 public:
  Trial(Ui& ui, const fs::path& recipe) : ui_(ui), path_(recipe) {}

  void run() {
    BuildOutcome built = first_build();
    for (int round = 1;; ++round) {
      const ImportTrial trial = all_imports(built);
      if (trial.failed.empty()) return tell_unknown();
      const ImageFacts facts = image_facts(ui_.store(), built.result.image, ui_.progress());
      Additions fresh = remedies_of(
          trial.failed, facts.missing_libraries.value.value_or(std::vector<MissingLibrary>{}));
      keep_new(fresh.system, tried_.system);
      keep_new(fresh.packages, tried_.packages);
      keep_new(fresh.constraints, tried_.constraints);
      if (round == kMostTrials || fresh.empty()) give_up(trial);
      for (const FailedImport& one : trial.failed) ui_.say(shown_failure(one));
      if (!took(fresh)) give_up(trial);
      built = build();
    }
  }

 private:
  /// The packages' imports, and those of the project's sources.
  ImportTrial all_imports(const BuildOutcome& built) {
    ImportTrial trial = try_and_keep_imports(ui_, built.result.image, built.lock);
    const fs::path folder = path_.parent_path();
    std::vector<ProjectImport> imports = project_imports(folder.empty() ? "." : folder);
    // Of what does not come in at all it is told once.
    std::erase_if(imports, [&](const ProjectImport& one) {
      const std::string& module = one.statement.module;
      const std::string first = module.substr(0, module.find('.'));
      return std::any_of(trial.failed.begin(), trial.failed.end(),
                         [&](const FailedImport& failed) { return failed.import == first; });
    });
    ProjectTrial project =
        try_project_imports(built.result.image, ui_.store(), ui_.progress(), imports);
    if (!imports.empty()) {
      ui_.say(fmt::format("imports of the project's own sources: {} succeeded, {} failed",
                          project.imported, project.failed.size() + project.unknown.size()));
    }
    unknown_ = std::move(project.unknown);
    std::move(project.failed.begin(), project.failed.end(), std::back_inserter(trial.failed));
    return trial;
  }

  [[noreturn]] void give_up(const ImportTrial& trial) {
    tell_unknown();
    throw failed_imports_error(trial, path_.string());
  }

  void tell_unknown() const {
    for (const FailedImport& one : unknown_) {
      ui_.say(
          fmt::format("note: `import {}` ({}): no package of the image has it; where it is not "
                      "the project's own, `mlenv add` its package",
                      one.import, one.package));
    }
  }

  /// Whether the recipe has them now, and a lock; without those that a lock refuses.
  bool took(Additions fresh) {
    while (!fresh.empty()) {
      const Recipe before = read_recipe(path_);
      Recipe more = with_fresh(before, fresh);
      if (more.source == before.source) return false;
      try {
        lock_with_remedies(before, more);
        return true;
      } catch (const Error& error) {  // a package that there is not
        for (const std::string& one : fresh.constraints) bounds_.constraints.erase(one);
        ui_.say(
            fmt::format("`{}` is as it was before: {}", path_.string(), error.frames().front()));
        if (!leaves_out_refused(fresh, error)) return false;
      }
    }
    return false;
  }

  Recipe with_fresh(const Recipe& before, const Additions& fresh) {
    Recipe more = with_added(ui_, with_added(ui_, before, PackageList::system, fresh.system),
                             PackageList::packages, fresh.packages);
    bounds_.constraints.insert(fresh.constraints.begin(), fresh.constraints.end());
    auto bounded = with_bounds(more, bounds_);
    if (!bounded) return more;
    for (const std::string& one : fresh.constraints) {
      ui_.say(fmt::format("added `{}` to `constraints`", one));
    }
    return *std::move(bounded);
  }

  /// Those that the refusal names are left out; where it names none, the bounds are.
  static bool leaves_out_refused(Additions& fresh, const Error& refusal) {
    const std::string said = join(refusal.frames(), "\n");
    const auto is_named = [&](const std::string& one) { return says(said, '`' + one + '`'); };
    const std::size_t named =
        std::erase_if(fresh.system, is_named) + std::erase_if(fresh.packages, is_named);
    if (named > 0 || fresh.constraints.empty()) return named > 0;
    fresh.constraints.clear();
    return true;
  }

  /// Without packages whose files are another's, too.
  BuildOutcome build() {
    while (true) {
      try {
        return built_here(ui_, path_, false);
      } catch (const Error& error) {
        if (!leaves_out_clashing(error)) throw;
      }
    }
  }

  /// Whether the recipe excludes one of two packages now that bring the same files.
  bool leaves_out_clashing(const Error& error) {
    if (error.code() != "wheels-clash") return false;
    const auto remedy = error.remedy().find("exclude");
    if (remedy == error.remedy().end()) return false;
    const std::string& name = remedy->second.front();
    if (!bounds_.excluded.insert(name).second) return false;
    const Recipe before = read_recipe(path_);
    std::optional<Recipe> bounded = with_bounds(before, bounds_);
    if (!bounded) return false;
    const auto& frames = error.frames();
    ui_.say(fmt::format("{}: added `{}` to `exclude`", frames.at(frames.size() > 1 ? 1 : 0), name));
    lock_with_remedies(before, *bounded);
    return true;
  }

  BuildOutcome first_build() {
    try {
      return build();
    } catch (const Error& error) {
      const Recipe before = read_recipe(path_);
      Recipe more = before;
      if (!follows_hint(error, more)) throw;
      try {
        lock_with_remedies(before, more);
      } catch (const Error&) {  // what was found so far is of use all the same
        write_answer_file(path_, more.source);
        throw;
      }
    }
    return build();
  }

  /// `more` holds what was added when this throws.
  void lock_with_remedies(const Recipe& before, Recipe& more) {
    while (true) {
      try {
        const LockOutcome locked = relock(ui_, before, more);
        for (const std::string& change : locked.changes) ui_.say(change);
        if (locked.written) ui_.say(lock_summary(more, locked));
        return;
      } catch (const Error& error) {
        if (!follows_hint(error, more)) throw;
      }
    }
  }

  /// Whether a build that failed said what it lacks, and the recipe did not have that before.
  bool follows_hint(const Error& error, Recipe& recipe) {
    if (error.code() != "build-failed" || ++failed_builds_ > kMostFailedBuilds) return false;
    if (error.remedy().empty()) return false;
    const auto& frames = error.frames();
    ui_.say(fmt::format("{}: {}", frames.at(frames.size() > 2 ? 1 : 0), error.hint()));
    Recipe more = recipe;
    constexpr std::string_view kRequires = "build.requires.";
    for (const auto& [key, items] : error.remedy()) {
      if (key == "system") {
        more = with_added(ui_, std::move(more), PackageList::system, {items.begin(), items.end()});
      } else if (key == "build.constraints") {
        for (const std::string& one : items) add_build_constraint(one);
      } else if (key.starts_with(kRequires)) {
        bounds_.build_needs[key.substr(kRequires.size())].insert(items.begin(), items.end());
      }
    }
    if (auto bounded = with_bounds(more, bounds_)) more = *std::move(bounded);
    const bool changed = more.source != recipe.source;
    recipe = std::move(more);
    return changed;
  }

  /// A later bound of the same package takes the place of an earlier one.
  void add_build_constraint(const std::string& text) {
    std::erase_if(bounds_.build_constraints, [&](const std::string& one) {
      return name_of_requirement(one) == name_of_requirement(text);
    });
    bounds_.build_constraints.insert(text);
  }

  Ui& ui_;
  fs::path path_;
  Additions tried_;
  RecipeBounds bounds_;
  std::vector<FailedImport> unknown_;
  int failed_builds_ = 0;
};

}  // namespace

void try_recipe(Ui& ui, const fs::path& recipe) { Trial(ui, recipe).run(); }

}  // namespace mlenv::cli
