#pragma once
// Bounds that a trial finds necessary, at the end of a recipe's text: keys that no list holds yet.
#include <map>
#include <optional>
#include <set>
#include <string>

#include "recipes/recipe.hpp"

namespace mlenv {

struct RecipeBounds {
  std::set<std::string> constraints;                         ///< PEP 508
  std::set<std::string> excluded;                            ///< packages, whoever asks for them
  std::set<std::string> build_constraints;                   ///< of build requirements
  std::map<std::string, std::set<std::string>> build_needs;  ///< package → what its build requires
};

/// The recipe with them, in the place of those that this wrote before; everything else stays as it
/// is. Files that it names are read, as `read_recipe` does. nullopt: the recipe has one of the keys
/// itself, which a person is to change.
std::optional<Recipe> with_bounds(const Recipe& recipe, const RecipeBounds& bounds);

}  // namespace mlenv
