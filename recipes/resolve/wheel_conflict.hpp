#pragma once
// Which of the recipe's own lines a conflict among wheels is about.
#include <string>
#include <string_view>
#include <vector>

#include "recipes/recipe.hpp"
#include "recipes/resolve/conflict.hpp"

namespace mlenv {

/// Whether the account of it names the package (normalised), as a whole word.
bool speaks_of(const Conflict& conflict, std::string_view name);

/// Puts in front of the facts each of the recipe's requirements that uv names as required, with
/// line and caret; of the packages `direct`, which come from no index, each requirement and
/// constraint, where the conflict speaks of them.
void show_requirements(Conflict& conflict, const Recipe& recipe,
                       const std::vector<std::string>& direct = {});

/// The recipe's line for one package, by normalised name; no line for a package that it does not
/// name.
std::vector<std::string> requirement_lines(const Recipe& recipe, const std::string& name);

/// No index has these packages, which the recipe itself names (normalised names).
Conflict absent_packages(const Recipe& recipe, const std::vector<std::string>& names);
/// What such a conflict advises: the names that may have been meant, an index.
std::string hint_of_absent(const std::vector<std::string>& names);

}  // namespace mlenv
