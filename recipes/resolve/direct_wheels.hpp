#pragma once
// How uv is told of packages that come from no index.
#include <string>
#include <vector>

#include "recipes/resolve/source_release.hpp"
#include "recipes/resolve/uv.hpp"

namespace mlenv {

/// Puts the wheels of `direct` (at their `path`, under their own names) where the question names
/// them by their addresses. What is named by an address and has no wheel is not needed, and leaves
/// the question. Of a wheel that asks for others by addresses uv is told the same with their wheels
/// in place of the addresses; versions that anything else asks of them count.
/// Returns whether such an address was left out that an extra may call for which nothing was known
/// to ask for (`DirectSearch::needs_more`).
bool name_wheels(const std::vector<BuiltRelease>& direct, UvQuestion& question);

/// Of each of these wheels that the conflict speaks of: its version, where it is from, and which of
/// the others asks for it there.
std::vector<std::string> direct_facts(const std::vector<BuiltRelease>& direct,
                                      const Conflict& conflict);

}  // namespace mlenv
