#pragma once
// Steps that several commands share: a recipe's lock, an image built from it.
#include <optional>
#include <span>
#include <string>

#include "builder/build.hpp"
#include "cli/ui.hpp"
#include "recipes/lock_set.hpp"

namespace mlenv::cli {

struct LockOutcome {
  LockSet locks;  ///< of the recipe's platforms
  bool written = false;
  std::vector<std::string> changes;  ///< against the lock that was there
};
struct LockChoice {
  bool locked = false;
  bool upgrade = false;                  ///< everything
  std::vector<std::string> moved_names;  ///< upgrade these Python packages alone
};
/// Reads the recipe's lock and resolves what is missing or changed; writes it beside the recipe
/// when it differs. `locked`: it must exist and match, else a refusal (exit 3) that shows the
/// difference; nothing is written. A conflict is a refusal too. Throws `bad-package` for a package
/// to move that the lock does not hold, `no-lock` where there is none.
LockOutcome provide_lock(Ui& ui, const Recipe& recipe, const LockChoice& choice);
/// The same without writing it: `written` says whether there is something to write.
LockOutcome choose_lock(Ui& ui, const Recipe& recipe, const LockChoice& choice);
/// ``wrote `a.lock`: 1 wheel, 90 Debian packages``
std::string lock_summary(const Recipe& recipe, const LockOutcome& outcome);
/// The same for answers as JSON, with the changes.
nlohmann::json lock_as_json(const Recipe& recipe, const LockOutcome& outcome);

struct BuildChoice {
  LockChoice lock;
  std::string platform;  ///< empty: this machine's, else the recipe's only one
  unsigned jobs = 0;
  bool unpack = true;
  std::span<const fs::path>
      outputs;  ///< that will be written: `bad-output` where `files` copies one
  std::function<void(const Layer&)> on_layer;
  std::map<std::string, std::string> secrets;  ///< of `run` steps
  /// A layer of a recorded image, brought from elsewhere; nullopt when it cannot be had.
  std::function<std::optional<Layer>(const Digest& image, const Digest& blob)> fetch_layer;
  /// The whole of it, into the store.
  std::function<std::optional<Image>(const Digest& image)> fetch_image;
};
struct BuildOutcome {
  Lock lock;
  ProjectFiles files;
  BuildResult result;
};
/// Locks (saying on stderr what changed), builds for one platform, tags `NAME:latest` (tag_for).
/// Throws `no-platform` where the recipe is not for it. The result is held against
/// recipe.built where that records a build of the same lock (of other project files: what lies
/// below them), and written there otherwise; a file that cannot be written is a warning. With
/// `locked` the lock is not written, and a recipe.built of another lock is a refusal. What `run`
/// steps gave is taken from the record where its layers can be had; where a step was executed and
/// gave something else, that is a refusal with `locked` and a note without.
BuildOutcome build_recipe(Ui& ui, const fs::path& recipe_path, const BuildChoice& choice);
/// The image for this machine alone, ready to run.
Image built_image(Ui& ui, const fs::path& recipe_path, bool locked);

/// Whether an argument means a recipe file rather than an image name.
bool is_recipe_path(std::string_view argument);

/// Makes what this process published durable, in a process of its own; nothing where nothing is
/// new.
void sync_in_background(const Store& store);

}  // namespace mlenv::cli
