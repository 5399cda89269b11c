#pragma once
// Files of variables (`--env-file`), as Docker reads them.
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// A line is `NAME=VALUE`, the value as it stands (quotes, blanks and `#` are part of it), or
/// `NAME` for the caller's own value; empty lines and those that begin with `#` count for nothing.
/// Throws `bad-env-file` (usage) with all mistakes, each as `SHOWN:LINE: what`.
std::vector<std::string> parse_env_file(std::string_view text, std::string_view shown);

}  // namespace mlenv
