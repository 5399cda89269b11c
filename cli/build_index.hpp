#pragma once
// `build --platform all`: a recipe's images for all of its platforms, as one.
#include <vector>

#include "cli/recipes_use.hpp"
#include "images/image_index.hpp"

namespace mlenv::cli {

struct PlatformsOutcome {
  ImageSet image;                      ///< one platform's, or the index of all
  std::vector<BuildOutcome> outcomes;  ///< of each platform, by its name
};

/// Builds for each platform as `build_recipe` does, this machine's first, and names the index
/// `NAME:latest`. A platform that cannot be built here (`foreign-platform`) ends nothing but the
/// index: the others are built, named and recorded before that is thrown, with what lacks and what
/// there is.
PlatformsOutcome build_index(Ui& ui, const fs::path& recipe_path, BuildChoice choice);

}  // namespace mlenv::cli
