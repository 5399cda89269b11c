#pragma once
// Which platform a command is about, where a recipe or lock is for several.
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "recipes/lock_set.hpp"

namespace mlenv::cli {

/// Word of `--platform` for every platform of a recipe, or of an index.
inline constexpr std::string_view kAllPlatforms = "all";

/// The platform of a recipe to build: the one `asked` for, else this machine's, else the only one.
/// Throws `no-platform` (usage) for one that the recipe is not for.
std::string build_platform(const Recipe& recipe, const std::string& asked);

/// `linux/arm64`, `linux/arm/v7`, or empty, as it was given. Throws `usage` for what is neither.
std::string checked_platform(const std::string& word);

/// `latest`; of an image for another platform than this machine's `latest-arm64`, so that it does
/// not take the name of the one that runs here.
std::string tag_for(const std::string& platform);

/// Throws `foreign-platform` for an image that this machine cannot run.
void require_runnable(const Image& image, const std::string& name);

}  // namespace mlenv::cli
