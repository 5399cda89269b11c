#pragma once
// A recipe that a command edits: the lock is made first, from the recipe as it would be, and both
// files are written when that has worked.
#include <string>
#include <string_view>

#include "cli/recipe_lock.hpp"
#include "recipes/recipe_edit.hpp"

namespace mlenv::cli {

/// Puts `after` and its lock in the place of `before`'s, both or neither (recipe_write.hpp). Throws
/// what locking throws.
LockOutcome relock(Ui& ui, const Recipe& before, const Recipe& after);

/// ``added `six` to `packages` ``
std::string edit_sentence(const PackageEdit& change, std::string_view key);

}  // namespace mlenv::cli
