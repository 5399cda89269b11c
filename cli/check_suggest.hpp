#pragma once
// `check --suggest`: the nearest change of a recipe with which it runs, locked and judged anew.
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/check_subjects.hpp"
#include "runner/check/suggest.hpp"

namespace mlenv::cli {

/// What `--suggest` was told.
struct SuggestOptions {
  std::string subject;
  std::string file;    ///< to write; empty: NAME.suggested.yaml beside the recipe
  bool force = false;  ///< write over what is there
};

/// A recipe with its lock: that beside it, else one made now and written nowhere.
struct RecipeNow {
  Recipe recipe;
  std::optional<LockSet> locks;
  std::optional<Error> conflict;  ///< why it has none
};
/// nullopt for a subject that is no recipe and no lock beside one. Throws `recipe-exists` where
/// what would be written is there already, `bad-output` where it may not lie there, and what
/// reading and locking throw but `unsatisfiable`.
std::optional<RecipeNow> recipe_now(Ui& ui, const SuggestOptions& options);
/// As `check` judges it.
Subject subject_of(const RecipeNow& now, const std::string& argument);

struct Suggestion {
  struct Tried {
    std::string what;  ///< keys and build
    std::string why;   ///< it is not suggested
  };
  /// For a host on which nothing that could be suggested runs.
  struct Remedy {
    std::string host;
    std::string driver;             ///< the oldest that helps; empty: none does
    std::string change;             ///< of the recipe, that it needs too, or alone; empty: none
    std::vector<std::string> gpus;  ///< compute capabilities that the subject's build serves
  };
  bool needed = false;  ///< the subject does not run on all hosts
  std::optional<Recipe> recipe;
  LockSet locks{};
  std::string change{};  ///< keys
  std::string build{};
  std::vector<std::string> diff{};      ///< of the recipe's lines, with `-` and `+`
  std::vector<std::string> versions{};  ///< of the locks
  Checked checked{};                    ///< the verdict of the changed recipe
  std::vector<Tried> tried{};
  std::vector<Remedy> remedies{};
};

/// Locks and judges a few of the nearest changes, until one runs on as many hosts as it promised.
/// `now` is nullptr for what has no recipe: remedies alone. Throws the recipe's own conflict where
/// it has no lock and nothing is known against its hosts.
Suggestion suggest(Ui& ui, const RecipeNow* now, const Checked& checked, Demand demand,
                   const SuggestOptions& options);
/// Writes the recipe and its lock, where there is one.
void write_suggestion(const Suggestion& suggestion);

/// Below the verdict.
std::vector<std::string> suggestion_text(const Suggestion& suggestion);
nlohmann::json suggestion_json(const Suggestion& suggestion);

}  // namespace mlenv::cli
