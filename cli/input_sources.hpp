#pragma once
// Where the inputs of a recipe's lock come from on this machine (docs/lock.md).
#include <string>
#include <vector>

#include "builder/inputs.hpp"
#include "builder/release_build.hpp"
#include "cli/ui.hpp"
#include "recipes/lock.hpp"
#include "recipes/resolve/base_image.hpp"

namespace mlenv::cli {

BaseAccess base_access(Ui& ui);

/// The folder in which `mlenv vendor` puts a recipe's inputs when none is named.
fs::path usual_vendor_folder(const Recipe& recipe);

/// What builds releases of the recipe from source, and knows the same places.
ReleaseBuilder release_builder(Ui& ui, const Recipe& recipe, unsigned jobs);

/// $MLENV_VENDOR and the usual folder, the machine's package sources, archives of snapshots that
/// the recipe and config.yaml name. All arguments outlive the answer. Throws `config-invalid`
/// (usage).
InputSources input_sources(Ui& ui, const Recipe& recipe, const Lock& lock);

}  // namespace mlenv::cli
