#pragma once
// Which of the recipe's own lines a conflict among wheels is about.
#include <string>
#include <vector>

#include "recipes/recipe.hpp"
#include "recipes/resolve/conflict.hpp"

namespace mlenv {

/// Puts in front of the facts each of the recipe's requirements that uv names as required, with
/// line and caret.
void show_requirements(Conflict& conflict, const Recipe& recipe);

/// The recipe's line for one package, by normalised name; no line for a package that it does not
/// name.
std::vector<std::string> requirement_lines(const Recipe& recipe, const std::string& name);

/// No index has these packages, which the recipe itself names (normalised names).
Conflict absent_packages(const Recipe& recipe, const std::vector<std::string>& names);

}  // namespace mlenv
