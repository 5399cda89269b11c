#pragma once
// Folders that `mlenv vendor` fills: which of their files are its copies. These are part of no
// source, wherever such a folder lies; what else is there is.
#include <set>
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace mlenv {

/// A text file in such a folder: a name in each line, `#` before a comment.
inline constexpr std::string_view kVendorMark = ".mlenv-vendored";

/// The names in the folder's mark, and its own; none without a mark.
std::set<std::string> vendored_names(const fs::path& folder);

/// Adds names to the folder's mark, which is made when absent. Processes may do so at once.
void mark_vendored(const fs::path& folder, const std::set<std::string>& names);

}  // namespace mlenv
