#pragma once
// `mlenv init --try`: from a draft to an image in which every Python package can be imported.
#include "base/files.hpp"
#include "cli/ui.hpp"

namespace mlenv::cli {

/// Locks and builds the recipe, imports its packages, and adds what is missing (libraries to
/// `system`, modules to `packages`; of two packages with the same files one to `exclude`), in at
/// most five rounds. Says each round's outcome and each line that it adds. Throws `imports-failed`
/// where some still fail, and what locking and building throw: the recipe stays as it is by then.
void try_recipe(Ui& ui, const fs::path& recipe);

}  // namespace mlenv::cli
