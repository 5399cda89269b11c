#include "runner/record/git_folders.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

#include "base/files_beneath.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "runner/record/git_config.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kLongestLink = 8192;  // a path and a little

/// A file of one path, such as `commondir`.
std::optional<fs::path> path_in(const fs::path& folder, const std::string& name) {
  const std::optional<std::string> text =
      read_file_beneath(open_folder(folder).get(), name, kLongestLink);
  if (!text) return std::nullopt;
  const std::string_view path = trim(*text);
  if (path.empty() || path.find('\0') != std::string_view::npos) return std::nullopt;
  return folder / path;
}

/// What `.git` is, or leads to: nullopt where it is neither folder nor file.
std::optional<fs::path> git_folder_at(const fs::path& top) {
  constexpr std::string_view kPrefix = "gitdir:";
  std::error_code error;
  const fs::path entry = top / ".git";
  if (fs::is_directory(entry, error)) return fs::canonical(entry);
  const std::optional<std::string> text =
      read_file_beneath(open_folder(top).get(), ".git", kLongestLink);
  if (!text || !text->starts_with(kPrefix)) return std::nullopt;
  const fs::path target = top / trim(std::string_view(*text).substr(kPrefix.size()));
  fs::path found = fs::canonical(target, error);
  if (error || !fs::is_directory(found, error)) {
    throw NotKnown(
        fmt::format("`{}` leads to `{}`, which is not there", entry.string(), target.string()));
  }
  return found;
}

/// A folder without these is none, and git looks further above; a file has to lead somewhere.
bool is_repository(const fs::path& entry) {
  std::error_code error;
  if (!fs::is_directory(entry, error)) return fs::exists(fs::symlink_status(entry, error));
  return fs::exists(fs::symlink_status(entry / "HEAD", error)) &&
         fs::exists(entry / "objects", error) && fs::exists(entry / "refs", error);
}

/// The folder whose `.git` it is; nullopt without one.
std::optional<fs::path> top_of(const fs::path& folder) {
  std::error_code error;
  struct stat start {};
  fs::path at = fs::canonical(folder, error);
  if (error || ::stat(at.c_str(), &start) != 0) return std::nullopt;
  while (true) {
    struct stat status {};
    if (::stat(at.c_str(), &status) != 0 || status.st_dev != start.st_dev) return std::nullopt;
    if (is_repository(at / ".git")) return at;
    if (at == at.root_path()) return std::nullopt;
    at = at.parent_path();
  }
}

/// A linked work tree's folder lies in its repository's, and names the work tree's `.git`.
bool is_linked(const GitFolders& folders) {
  const std::optional<fs::path> back = path_in(folders.git, "gitdir");
  std::error_code error;
  return back && folders.git.parent_path().filename() == "worktrees" &&
         folders.git.parent_path().parent_path() == folders.common &&
         fs::weakly_canonical(*back, error) == fs::weakly_canonical(folders.top / ".git", error);
}

NotKnown elsewhere(const GitFolders& folders) {
  return NotKnown(fmt::format("`{}` leads to `{}`, which is the repository of another folder",
                              (folders.top / ".git").string(), folders.git.string()));
}

void check_belonging(GitFolders& folders) {
  const bool within = folders.git == folders.top / ".git";
  if (folders.git != folders.common) {
    if (!is_linked(folders)) throw elsewhere(folders);
    return;
  }
  const GitConfig config = read_git_config(folders.common, "config");
  std::optional<std::string> worktree = config.last("core.worktree");
  if (config.last("extensions.worktreeconfig") == "true") {  // of a sparse checkout
    const GitConfig own = read_git_config(folders.git, "config.worktree");
    if (auto there = own.last("core.worktree")) worktree = std::move(there);
  }
  std::error_code error;
  if (worktree) {
    if (fs::weakly_canonical(folders.git / *worktree, error) != folders.top) {
      throw NotKnown(
          fmt::format("`core.worktree` of `{}` names another folder", folders.git.string()));
    }
    return;
  }
  if (within) return;
  if (folders.git.filename() == ".git" || config.last("core.bare") == "true") {
    throw elsewhere(folders);
  }
  folders.own = false;
}

/// Where references or objects are kept in another way, what is read here is not what git has: a
/// repository whose references are in tables has a HEAD and `refs` that name nothing (git's
/// Documentation/technical/repository-version).
void check_format(const GitFolders& folders) {
  const auto not_known = [&](std::string_view key, std::string_view value) {
    return NotKnown(fmt::format("`{}` has a format that mlenv does not know: `{} = {}`",
                                folders.common.string(), key, printable(value)));
  };
  constexpr std::string_view kVersion = "core.repositoryformatversion";
  const GitConfig config = read_git_config(folders.common, "config");
  const std::string version = config.last(kVersion).value_or("0");
  if (version != "0" && version != "1") throw not_known(kVersion, version);
  constexpr std::array<std::string_view, 4> kOfBoth = {
      "extensions.noop", "extensions.preciousobjects", "extensions.partialclone",
      "extensions.worktreeconfig"};
  // Of version 1 alone: git refuses them in version 0, in which it passes others by.
  constexpr std::array<std::string_view, 5> kOfOne = {
      "extensions.noop-v1", "extensions.objectformat", "extensions.compatobjectformat",
      "extensions.refstorage", "extensions.relativeworktrees"};
  const auto is_in = [](const auto& list, std::string_view key) {
    return std::find(list.begin(), list.end(), key) != list.end();
  };
  for (const auto& [key, value] : config.values) {
    if (!key.starts_with("extensions.") || is_in(kOfBoth, key)) continue;
    const bool of_one = is_in(kOfOne, key);
    if (version == "0" && !of_one) continue;
    const bool as_ever = key == "extensions.refstorage"     ? value == "files"
                         : key == "extensions.objectformat" ? value == "sha1" || value == "sha256"
                                                            : of_one;
    if (version == "0" || !as_ever) throw not_known(key, value);
  }
}

}  // namespace

GitFolders find_git_folders(const fs::path& folder) {
  const std::optional<fs::path> top = top_of(folder);
  if (!top) throw NotKnown(fmt::format("`{}` lies in no git repository", folder.string()));
  const std::optional<fs::path> git = git_folder_at(*top);
  if (!git) throw NotKnown(fmt::format("`{}` is no git repository", (*top / ".git").string()));
  GitFolders folders{*top, *git, *git};
  if (const std::optional<fs::path> common = path_in(*git, "commondir")) {
    std::error_code error;
    folders.common = fs::canonical(*common, error);
    if (error) throw elsewhere(folders);
  }
  check_format(folders);
  check_belonging(folders);
  return folders;
}

void require_own(const GitFolders& folders) {
  if (folders.own) return;
  throw NotKnown(
      fmt::format("`{0}` does not say that it is the repository of `{1}` (`git "
                  "--git-dir={0} config core.worktree {1}`)",
                  folders.git.string(), folders.top.string()));
}

bool has_git_folders(const fs::path& folder) { return top_of(folder).has_value(); }

}  // namespace mlenv
