#pragma once
#include <string_view>

namespace mlenv {

/// How the names of files begin that are not finished: AtomicFile's, beside their targets, where
/// they must have one. What a killed process left of them is nobody's work.
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

}  // namespace mlenv
