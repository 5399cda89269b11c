#pragma once
// How deep the lists and maps of a JSON text lie in each other.
#include <string_view>

namespace mlenv {

inline constexpr std::size_t kDeepestJson = 200;

/// Whether that is more than `kDeepestJson`, and so deeper than any of ours or of a registry. What
/// copies or writes them out calls itself at each level: two megabytes could use up the stack.
bool is_too_deep(std::string_view json);

}  // namespace mlenv
