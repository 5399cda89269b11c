#pragma once
// Changes to a recipe's text that a person would make by hand: a package more or less. Only the
// bytes of that package change; comments, order, layout and quotes of all else stay.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/recipe.hpp"

namespace mlenv {

/// The lists that can be edited: `packages` of Python, `system` of Debian.
enum class PackageList { packages, system };
std::string_view key_of(PackageList list);

struct PackageEdit {
  std::string package;                ///< its name as the recipe has or had it
  std::optional<std::string> before;  ///< the item; nullopt: it was not there
  std::optional<std::string> after;   ///< nullopt: it is there no more
  /// Nothing was to be done.
  bool none() const { return before == after; }
};

struct RecipeEdit {
  Recipe recipe;                     ///< of the new text, with the old one's path
  std::vector<PackageEdit> changes;  ///< one a word, in the words' order
};

/// Each word is a requirement (PEP 508) or `name[=version]` of Debian. One that is there by name
/// keeps its place: it stays as it is when the word says no more than its name, else it takes the
/// word's specifier, and its extras and marker where it has some.
/// Throws `bad-package` (usage) for the first word that is neither; `recipe-layout` (failed) where
/// the text is written in a way that cannot be changed without changing more; `recipe-invalid` when
/// the result would be no recipe.
RecipeEdit add_packages(const Recipe& recipe, PackageList list,
                        const std::vector<std::string>& words);
/// By name. Also throws `not-found` (failed) for a name that is not there, with a near one.
RecipeEdit remove_packages(const Recipe& recipe, PackageList list,
                           const std::vector<std::string>& names);

}  // namespace mlenv
