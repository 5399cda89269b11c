#pragma once
// What uv's account of a conflict means for whoever wrote the recipe: a wheel for other Pythons or
// another system, a Python that is too old, demands that `cuda` stands for.
#include <functional>
#include <optional>
#include <string>

#include "recipes/recipe.hpp"
#include "recipes/resolve/conflict.hpp"

namespace mlenv {

/// The newest release of a package (normalised name) that has something for the image, whatever the
/// recipe says; empty: none.
using NewestRelease = std::function<std::string(const std::string& name)>;

/// Puts headline, facts and hint into the recipe's terms where uv's account tells enough. `python`
/// is the image's, in full. Asks for the newest release where the recipe's own is none of the
/// index's.
void explain_conflict(Conflict& conflict, const Recipe& recipe, const std::string& python,
                      const NewestRelease& newest);

/// Bases whose Python `fits`: `write `base: debian:trixie` (Python 3.13)`; empty: there is
/// none. At most two: the newest of the recipe's own distribution, and of others.
std::string bases_with_python(const Recipe& recipe,
                              const std::function<bool(std::string_view minor)>& fits);

}  // namespace mlenv
