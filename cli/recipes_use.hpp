#pragma once
// Steps that several commands share: an image built from a recipe.
#include <optional>
#include <span>
#include <string>

#include "builder/build.hpp"
#include "cli/recipe_lock.hpp"
#include "cli/ui.hpp"

namespace mlenv::cli {

struct BuildChoice {
  LockChoice lock;
  std::string platform;  ///< empty: this machine's, else the recipe's only one
  unsigned jobs = 0;
  bool unpack = true;
  bool facts = false;  ///< read the image's files and record what it needs of a host
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
  std::vector<VerifiedData> data{};
};
/// Locks (saying on stderr what changed), builds for one platform, tags `NAME:latest` (tag_for).
/// Throws `no-platform` where the recipe is not for it. The result is held against
/// recipe.built where that records a build of the same lock (of other project files: what lies
/// below them), and written there otherwise; a file that cannot be written is a warning. With
/// `locked` the lock is not written, and a recipe.built of another lock is a refusal. What `run`
/// steps gave is taken from the record where its layers can be had; where a step was executed and
/// gave something else, that is a refusal with `locked` and a note without.
BuildOutcome build_recipe(Ui& ui, const fs::path& recipe_path, const BuildChoice& choice);
/// Locks, saying on stderr what changed.
LockOutcome provide_lock_aloud(Ui& ui, const Recipe& recipe, const LockChoice& choice);
/// Notes in recipe.built that these images, which it records, make this index. Throws
/// `not-reproduced` where it records another index of them; a file that cannot be written is a
/// warning, and nothing is noted where it does not record the images.
void record_index(const Ui& ui, const Recipe& recipe, const ImageSet& index);
/// The image for this machine alone, ready to run.
Image built_image(Ui& ui, const fs::path& recipe_path, bool locked);
/// The same with all that is known of it.
BuildOutcome built_here(Ui& ui, const fs::path& recipe_path, bool locked);

/// Whether an argument means a recipe file rather than an image name.
bool is_recipe_path(std::string_view argument);

/// Makes what this process published durable, in a process of its own; nothing where nothing is
/// new.
void sync_in_background(const Store& store);

}  // namespace mlenv::cli
