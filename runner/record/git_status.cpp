#include "runner/record/git_status.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <set>

#include <fmt/core.h>

#include "base/files_beneath.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "runner/record/git_config.hpp"
#include "runner/record/git_lfs.hpp"

namespace mlenv {
namespace {

using GitNames = std::vector<std::string>;
using std::chrono::steady_clock;

constexpr int kDeepestSubmodule = 10;                           // submodules of submodules
constexpr std::size_t kMostGitOutput = std::size_t{64} << 20U;  // run_captured() keeps no more

/// Of `git status --porcelain -z`: two letters, a blank, the name.
struct Status {
  std::string letters;
  std::string name;
};

std::vector<Status> parse_status(std::string_view text) {
  constexpr std::size_t kLetters = 3;
  std::vector<Status> found;
  for (const std::string_view entry : split(text, '\0')) {
    if (entry.size() <= kLetters) continue;
    found.push_back({std::string(entry.substr(0, 2)), std::string(entry.substr(kLetters))});
  }
  return found;
}

std::string nul_ended(const GitNames& names) {
  std::string text;
  for (const std::string& name : names) text += name + '\0';
  return text;
}

/// Answers of NUL between `kParts` words, one behind the other.
std::vector<std::string_view> nul_parts(const std::string& answer) {
  std::vector<std::string_view> parts = split(answer, '\0');
  if (!parts.empty()) parts.pop_back();
  return parts;
}

/// Name → filter that the attributes give it.
std::map<std::string, std::string> filters_of(const GitRepository& repository,
                                              const GitNames& names) {
  std::map<std::string, std::string> filters;
  const fs::path& top = repository.folders().top;
  const std::string answer =
      repository.ask_in(top, top, {"check-attr", "-z", "--stdin", "filter"}, nul_ended(names));
  const std::vector<std::string_view> parts = nul_parts(answer);
  for (std::size_t i = 0; i + 2 < parts.size(); i += 3) {
    const std::string_view value = parts[i + 2];
    if (value == "unspecified" || value == "unset" || value == "set") continue;
    filters.emplace(parts[i], value);
  }
  return filters;
}

/// Name → what the index has for it, where that is a pointer of LFS.
class Pointers {
 public:
  Pointers(const GitRepository& repository, const GitNames& names) {
    if (names.empty()) return;
    const fs::path& top = repository.folders().top;
    std::string questions;
    for (const std::string& name : names) {
      if (name.find('\n') == std::string::npos) questions += ":" + name + "\n";
    }
    const std::string sizes = repository.ask_in(
        top, top, {"cat-file", "--batch-check=%(objecttype) %(objectsize)"}, questions);
    std::string small;
    std::size_t at = 0;
    const std::vector<std::string_view> lines = split(sizes, '\n');
    for (const std::string& name : names) {
      if (name.find('\n') != std::string::npos || at >= lines.size()) continue;
      if (is_small(lines[at++])) {
        names_.push_back(name);
        small += ":" + name + "\n";
      }
    }
    if (!names_.empty()) texts_ = repository.ask_in(top, top, {"cat-file", "--batch"}, small);
  }

  std::map<std::string, LfsPointer> read() const {
    std::map<std::string, LfsPointer> found;
    std::string_view rest = texts_;
    for (const std::string& name : names_) {
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos) break;
      const std::string_view head = rest.substr(0, end);
      const std::size_t size = size_at_end(head);
      if (size > kLongestPointer || rest.size() < end + size + 2) break;
      if (const auto pointer = parse_lfs_pointer(rest.substr(end + 1, size))) {
        found.emplace(name, *pointer);
      }
      rest.remove_prefix(end + size + 2);
    }
    return found;
  }

 private:
  static std::size_t size_at_end(std::string_view line) {
    const std::string_view digits = line.substr(line.rfind(' ') + 1);
    std::size_t size = kLongestPointer + 1;
    (void)std::from_chars(digits.data(), digits.data() + digits.size(), size);
    return size;
  }
  static bool is_small(std::string_view line) {
    return line.starts_with("blob ") && size_at_end(line) <= kLongestPointer;
  }

  GitNames names_;
  std::string texts_;
};

/// Of files whose content is not that of the index as it stands there: those that another program
/// would have made that content of.
std::set<std::string> unchanged_by_filters(const GitRepository& repository, const GitNames& names) {
  constexpr std::chrono::seconds kMost{60};
  const steady_clock::time_point until = steady_clock::now() + kMost;
  std::set<std::string> unchanged;
  const std::map<std::string, std::string> filters = filters_of(repository, names);
  GitNames lfs;
  GitNames other;
  for (const auto& [name, filter] : filters) (filter == "lfs" ? lfs : other).push_back(name);
  const fs::path& top = repository.folders().top;
  for (const auto& [name, pointer] : Pointers(repository, lfs).read()) {
    if (has_content(top, name, pointer, until)) unchanged.insert(name);
  }
  if (other.empty()) return unchanged;
  repository.trust_times();
  constexpr std::size_t kAtOnce = 500;
  for (std::size_t i = 0; i < other.size(); i += kAtOnce) {
    GitNames words = {"--literal-pathspecs", "diff-files",          "--name-only", "-z",
                      "--no-ext-diff",       "--ignore-submodules", "--"};
    const std::size_t end = std::min(other.size(), i + kAtOnce);
    words.insert(words.end(), other.begin() + static_cast<std::ptrdiff_t>(i),
                 other.begin() + static_cast<std::ptrdiff_t>(end));
    const std::string answer = repository.ask_in(top, top, words);
    const std::vector<std::string_view> differing = nul_parts(answer);
    for (std::size_t at = i; at < end; ++at) {
      if (std::find(differing.begin(), differing.end(), other[at]) == differing.end()) {
        unchanged.insert(other[at]);
      }
    }
  }
  return unchanged;
}

/// Commit → path of what the index has of other repositories.
std::vector<std::pair<std::string, std::string>> submodules_of(const GitRepository& repository,
                                                               const GitNames& paths) {
  std::vector<std::pair<std::string, std::string>> found;
  if (!repository.may_have_submodules()) return found;
  GitNames words = {"ls-files", "--stage", "-z", "--full-name", "--"};
  words.insert(words.end(), paths.begin(), paths.end());
  const std::string answer = repository.ask(words);
  if (answer.size() >= kMostGitOutput) throw NotKnown("the index has too many files to list");
  for (const std::string_view line : nul_parts(answer)) {
    const std::size_t tab = line.find('\t');
    const std::vector<std::string_view> parts = split(line.substr(0, tab), ' ');
    if (tab == std::string_view::npos || parts.size() != 3 || parts[0] != "160000") continue;
    found.emplace_back(parts[1], line.substr(tab + 1));
  }
  return found;
}

/// Path → `ignore` in `.gitmodules` (gitmodules(5)).
std::map<std::string, std::string> ignored_submodules(const fs::path& top) {
  std::map<std::string, std::string> found;
  const GitConfig config = read_git_config(top, ".gitmodules");
  for (const auto& [key, path] : config.values) {
    if (!key.starts_with("submodule.") || !key.ends_with(".path")) continue;
    const std::string name = key.substr(0, key.size() - std::string_view(".path").size());
    if (const auto ignore = config.last(name + ".ignore")) found[path] = *ignore;
  }
  return found;
}

GitNames all_changes(const GitRepository& repository, const GitNames& paths, bool with_new,
                     int depth);

/// As the folder has it: whether it is another commit than the index says, or changed itself.
bool submodule_changed(const fs::path& top, const std::string& path, const std::string& commit,
                       const std::string& ignore, int depth) {
  struct stat status {};
  const fs::path folder = top / path;
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return true;
  if (::lstat((folder / ".git").c_str(), &status) != 0) return false;  // was not checked out
  if (depth >= kDeepestSubmodule) {
    throw NotKnown(fmt::format("`{}`: too many submodules in each other", path));
  }
  const GitRepository inner{folder};
  if (inner.folders().top != fs::canonical(folder)) return false;
  const std::string head = inner.ask({"rev-parse", "--verify", "-q", "HEAD"});
  if (trim(head) != commit) return true;
  if (ignore == "dirty") return false;
  return !all_changes(inner, {"."}, ignore != "untracked", depth + 1).empty();
}

GitNames changed_submodules(const GitRepository& repository, const GitNames& paths, int depth) {
  const auto submodules = submodules_of(repository, paths);
  if (submodules.empty()) return {};
  GitNames changed;
  const auto ignored = ignored_submodules(repository.folders().top);
  std::set<std::string> staged;
  try {
    GitNames words = {"diff-index",
                      "--cached",
                      "--name-only",
                      "-z",
                      "--no-ext-diff",
                      "--no-renames",
                      "--ignore-submodules=none",
                      "HEAD",
                      "--"};
    words.insert(words.end(), paths.begin(), paths.end());
    const std::string answer = repository.ask(words);
    for (const std::string_view name : nul_parts(answer)) staged.emplace(name);
  } catch (const NotKnown&) {  // no commit yet: all is staged
    for (const auto& [commit, path] : submodules) staged.insert(path);
  }
  for (const auto& [commit, path] : submodules) {
    const auto found = ignored.find(path);
    const std::string ignore = found == ignored.end() ? "" : found->second;
    const bool differs = staged.contains(path) ||
                         (ignore != "all" &&
                          submodule_changed(repository.folders().top, path, commit, ignore, depth));
    if (differs) changed.push_back(path);
  }
  return changed;
}

GitNames all_changes(const GitRepository& repository, const GitNames& paths, bool with_new,
                     int depth) {
  GitNames words = {"status",
                    "--porcelain=v1",
                    "-z",
                    "--no-renames",
                    "--ignore-submodules=all",
                    with_new ? "--untracked-files=all" : "--untracked-files=no",
                    "--"};
  words.insert(words.end(), paths.begin(), paths.end());
  const std::string answer = repository.ask(words);
  if (answer.size() >= kMostGitOutput) throw NotKnown("git names too many files");
  GitNames names;
  GitNames doubtful;
  for (Status& one : parse_status(answer)) {
    if (one.letters == " M") doubtful.push_back(one.name);
    names.push_back(std::move(one.name));
  }
  if (!doubtful.empty()) {
    const std::set<std::string> unchanged = unchanged_by_filters(repository, doubtful);
    std::erase_if(names, [&](const std::string& name) { return unchanged.contains(name); });
  }
  for (std::string& name : changed_submodules(repository, paths, depth)) {
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

std::vector<std::string> changed_files(const GitRepository& repository,
                                       const std::vector<std::string>& without) {
  GitNames paths = {"."};
  for (const std::string& path : without) paths.push_back(":(exclude,literal)" + path);
  return all_changes(repository, paths, true, 0);
}

}  // namespace mlenv
