#include "recipes/project_path.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// What is there under a near name, for a path that is not.
std::string near_name(const fs::path& wanted) {
  std::vector<std::string> names;
  std::error_code unknown;
  if (!fs::is_directory(wanted.parent_path(), unknown)) return {};
  for (const fs::path& entry : list_folder(wanted.parent_path())) {
    names.push_back(entry.filename().string());
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return suggestion(wanted.filename().string(), candidates);
}

}  // namespace

std::variant<std::string, PathMistake> clean_project_path(std::string_view text) {
  if (trim(text).empty() || has_control(text)) return PathMistake{"is no path"};
  if (text.front() == '/') return PathMistake{"is absolute"};
  if (text.front() == '~') return PathMistake{"begins with `~`"};
  std::vector<std::string> parts;
  for (const std::string_view part : split(text, '/')) {
    if (part == "..") return PathMistake{"leads out through `..`"};
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  return parts.empty() ? "." : join(parts, "/");
}

std::variant<fs::path, PathMistake> find_project_path(const fs::path& folder,
                                                      const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) throw os_error(error.value(), "cannot read `{}`", folder.string());
  fs::path found = fs::canonical(real / path, error);
  if (error) {
    const bool absent =
        error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
    return PathMistake{absent ? "does not exist" + near_name(real / path)
                              : "cannot be read: " + errno_text(error.value())};
  }
  const auto [end, rest] = std::mismatch(real.begin(), real.end(), found.begin(), found.end());
  if (end != real.end()) {
    return PathMistake{
        fmt::format("is a link that leads out of the recipe's folder, to `{}`", found.string())};
  }
  const std::string plain = found.lexically_relative(real).string();
  if (plain != path) {
    return PathMistake{fmt::format("is reached through a link: write `{}`", plain)};
  }
  return found;
}

bool leads_out(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path found = fs::canonical(path, error);
  if (error) return false;
  const fs::path real = fs::canonical(folder.empty() ? "." : folder, error);
  if (error) return true;
  return std::mismatch(real.begin(), real.end(), found.begin(), found.end()).first != real.end();
}

}  // namespace mlenv
