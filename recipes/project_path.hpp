#pragma once
// Paths that a recipe names: in its own folder, and through no link.
#include <string>
#include <string_view>
#include <variant>

#include "base/files.hpp"

namespace mlenv {

/// What is wrong with a path, to be said after it: `is absolute`.
struct PathMistake {
  std::string message;
};

/// `src//a/./b` becomes `src/a/b`, the folder itself `.`; absolute paths, `~` and `..` are
/// mistakes.
std::variant<std::string, PathMistake> clean_project_path(std::string_view text);

/// Where a clean path lies on the disk. Mistakes: it does not exist (with a near name, where there
/// is one), cannot be read, or is reached through a link, whose name the rules about names would
/// not see. Throws when the folder itself cannot be read.
std::variant<fs::path, PathMistake> find_project_path(const fs::path& folder,
                                                      const std::string& path);

/// Whether `path` leads to something that lies outside `folder`, by `..` or through links. What
/// does not exist leads nowhere. An empty `folder` is the current one.
bool leads_out(const fs::path& path, const fs::path& folder);

}  // namespace mlenv
