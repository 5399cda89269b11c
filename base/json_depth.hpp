#pragma once
// How deep the lists and maps of a JSON text lie in each other.
#include <string_view>

namespace mlenv {

inline constexpr std::size_t kDeepestJson = 200;

/// Whether that is more than `kDeepestJson`, and so deeper than any of ours or of a registry. What
/// copies or writes them out calls itself at each level: two megabytes could use up the stack.
bool is_too_deep(std::string_view json);

/// How many values a JSON text has, at most: its commas, brackets and braces outside of texts. What
/// a parser makes of each takes tens of bytes, however short it is written.
std::size_t json_values(std::string_view json);

}  // namespace mlenv
