#pragma once
// An edited recipe and its lock, put in the place of the former ones.
#include <optional>
#include <string>

#include "recipes/recipe.hpp"

namespace mlenv {

/// The lock beside a recipe, as text.
struct LockTexts {
  std::optional<std::string> before;  ///< that the new one was made from; nullopt: there was none
  std::optional<std::string> after;   ///< nullopt: the lock stays as it is
};

/// Writes the lock, then the recipe (where a link leads, with its permissions), one process at a
/// time: of two that edit one recipe the second throws `recipe-changed`, as where recipe or lock
/// are no longer what they were for any other reason, and has written nothing. Any failure leaves
/// both files as they were. Where the file system knows no locks, they are looked at all the same.
void write_recipe(const Recipe& before, const Recipe& after, const LockTexts& lock);

}  // namespace mlenv
