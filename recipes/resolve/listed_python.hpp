#pragma once
// The Python that the files in `requirements` want, held against the one that the image has.
#include <optional>

#include "recipes/lock.hpp"
#include "recipes/recipe.hpp"
#include "recipes/resolve/conflict.hpp"

namespace mlenv {

/// What `requires-python` of a file leaves out of `lock.python`, and what to do, which depends on
/// where that Python comes from: an archive of the recipe's own, an image, or a distribution.
std::optional<Conflict> listed_python_conflict(const Recipe& recipe, const Lock& lock);

}  // namespace mlenv
