#pragma once
// How uv is told of packages that come from no index.
#include <vector>

#include "recipes/resolve/source_release.hpp"
#include "recipes/resolve/uv.hpp"

namespace mlenv {

/// Puts the wheels of `direct` (at their `path`, under their own names) where the question names
/// them by their addresses, and where one of them asks for another by an address of its own. What
/// is named by an address and has no wheel is not needed, and leaves the question.
void name_wheels(const std::vector<BuiltRelease>& direct, UvQuestion& question);

}  // namespace mlenv
