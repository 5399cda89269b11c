#pragma once
// `build --explain`: what each step did, and why.
#include <optional>
#include <string>
#include <vector>

#include "cli/recipes_use.hpp"
#include "recipes/built_set.hpp"
#include "recipes/lock_set.hpp"

namespace mlenv::cli {

/// What a recipe's last build left beside it. To be read before a build, which writes it anew;
/// unreadable files count as absent.
struct EarlierBuild {
  std::optional<LockSet> locks;
  std::optional<BuiltSet> builds;
};
EarlierBuild earlier_build(const fs::path& recipe);

/// A line for each step: whether it was reused or made, its title, its size, and why. Where the
/// last build is known, the why of a made step is which of its inputs changed since.
std::vector<std::string> explanation(const EarlierBuild& earlier, const BuildOutcome& outcome);

}  // namespace mlenv::cli
