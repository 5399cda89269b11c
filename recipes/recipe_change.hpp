#pragma once
// Another build of a recipe's framework, said in the recipe's own text: which release of CUDA,
// which version, which drivers and GPUs it is for. All other bytes stay, comments and order too.
#include <optional>
#include <string>
#include <vector>

#include "recipes/recipe.hpp"
#include "recipes/requirement.hpp"

namespace mlenv {

/// What is said otherwise. What is empty stays.
struct RecipeChange {
  std::string framework{};                 ///< specifier of the framework's version: `==2.10.*`
  std::string cuda{};                      ///< `12.8`, `12`, `cpu`
  std::string driver{};                    ///< `>=535.183.06`
  std::vector<std::string> gpus{};         ///< to be added
  bool no_demands = false;                 ///< `driver`, `gpus` and `libraries` are taken out
  std::vector<std::string> constraints{};  ///< to be added: `numpy<2`
  friend bool operator==(const RecipeChange&, const RecipeChange&) = default;
};

/// A framework that a recipe names itself.
struct NamedFramework {
  std::string package;  ///< `torch`, `tensorflow`, `jax`
  Requirement requirement;
  bool in_packages = false;  ///< an item of `packages`, not `framework`
};
/// nullopt: none of ours, or only files in `requirements` or other packages ask for it.
std::optional<NamedFramework> named_framework(const Recipe& recipe);

/// The recipe with the change, as a file at `path`, which lies in the same folder. A framework's
/// version is changed where the recipe names it. Throws `recipe-layout` (failed) where the text is
/// written in a way that cannot be changed without changing more, `recipe-invalid` where the result
/// would be no recipe.
Recipe changed_recipe(const Recipe& recipe, const RecipeChange& change, const fs::path& path);

/// ``framework: "pytorch==2.10.*"`, `cuda: "12.8"` ``: the keys that the change is about.
std::string shown(const Recipe& recipe, const RecipeChange& change);

}  // namespace mlenv
