#pragma once
// Settings of a git repository, read as text: no file that they include, no program that they name.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// In their order; a key is `section.name` or `section.Sub.name`, all but `Sub` in lower case. A
/// key without a value has `true`.
struct GitConfig {
  std::vector<std::pair<std::string, std::string>> values;
  /// The one that counts.
  std::optional<std::string> last(std::string_view key) const;
};

/// By git-config(1), "Syntax". Throws NotKnown (git_folders.hpp) for what git would refuse.
GitConfig parse_git_config(std::string_view text, const fs::path& shown);

/// Of a file in the repository's folder; none where it is absent, a link or no file.
GitConfig read_git_config(const fs::path& folder, const std::string& name);

}  // namespace mlenv
