// Repositories that a build clones, and at which commit it has them.
#include <algorithm>
#include <array>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using GitWords = std::span<const std::string>;

bool is_git(GitWords words) {
  return words.size() > 2 && std::string_view(words[0]).substr(words[0].rfind('/') + 1) == "git";
}

/// `tags/v1`, `origin/main` as addresses name them.
std::string reference_of(std::string_view word) {
  for (const std::string_view begin : {"refs/tags/", "tags/", "refs/heads/", "origin/"}) {
    if (word.starts_with(begin)) return std::string(word.substr(begin.size()));
  }
  return std::string(word);
}

/// The commit that `git checkout`, `switch` and `reset --hard` set a repository to; empty: none, as
/// for files of it.
std::string reference_set(GitWords words) {
  constexpr std::array<std::string_view, 6> kNames = {"-b", "-B", "-c", "-C", "--orphan", "-t"};
  std::vector<std::string> named;
  bool hard = words[0] != "reset";
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--") return {};
    if (words[i] == "--hard") hard = true;
    if (is_among(kNames, words[i])) {
      ++i;
    } else if (!words[i].starts_with('-')) {
      named.push_back(words[i]);
    }
  }
  if (!hard || named.size() != 1 || named[0] == "." || named[0].find("HEAD") != std::string::npos) {
    return {};
  }
  return reference_of(named[0]);
}

/// `ssh://git@host/x.git` of `git@host:x.git`, as ssh's own programs write it; others as they are.
std::string ssh_address(const std::string& address) {
  const std::size_t at = address.find('@');
  const std::size_t colon = address.find(':');
  const bool short_form = at != std::string::npos && colon != std::string::npos && at < colon &&
                          address.find('/') > at && address.find("://") == std::string::npos;
  if (!short_form) return address;
  return "ssh://" + address.substr(0, colon) + '/' + address.substr(colon + 1);
}

/// Without `..` and a `/` at its end.
std::string plain_path(const fs::path& path) {
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

std::string Clone::address() const {
  return "git+" + url + (reference.empty() ? "" : '@' + reference);
}

std::optional<Clone> clone_of(GitWords words, const std::string& folder) {
  if (!is_git(words) || words[1] != "clone") return std::nullopt;
  constexpr std::array<std::string_view, 8> kValues = {"-b",     "--branch", "--depth", "-c",
                                                       "--jobs", "-j",       "-o",      "--origin"};
  std::string reference;
  std::vector<std::string> rest;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("--branch=")) reference = word.substr(9);
    if (!word.starts_with('-')) {
      rest.push_back(word);
    } else if (is_among(kValues, word) && i + 1 < words.size()) {
      ++i;
      if (word == "-b" || word == "--branch") reference = words[i];
    }
  }
  if (!rest.empty()) rest[0] = ssh_address(rest[0]);
  if (rest.empty() || rest[0].find("://") == std::string::npos) return std::nullopt;
  std::string name = rest.size() > 1 ? rest[1] : rest[0].substr(rest[0].rfind('/') + 1);
  if (rest.size() == 1 && name.ends_with(".git")) name.resize(name.size() - 4);
  return Clone{plain_path(fs::path(folder.empty() ? "/" : folder) / name), rest[0], reference};
}

bool is_of_clone(const Clone& clone, const std::string& path) {
  return path == clone.path || path.starts_with(clone.path + '/');
}

bool is_by_ssh(const Clone& clone) {
  return clone.url.starts_with("ssh://") || clone.url.starts_with("git+ssh://");
}

bool is_clone_of_folder(const Clone& clone, const fs::path& folder) {
  std::string_view address = clone.url;
  while (address.ends_with('/')) address.remove_suffix(1);
  if (address.ends_with(".git")) address.remove_suffix(4);
  const std::size_t name = address.rfind('/');
  if (name == std::string_view::npos || name == 0) return false;
  std::error_code unknown;
  const fs::path whole = fs::weakly_canonical(folder.empty() ? "." : folder, unknown);
  if (to_lower(whole.filename().string()) == to_lower(address.substr(name + 1))) return true;
  const std::size_t owner = address.find_last_of("/:", name - 1);
  if (owner == std::string_view::npos) return false;
  const auto config = read_small_file_if_exists(whole / ".git/config", size_limit::kPyproject);
  return config && says(to_lower(*config), to_lower(address.substr(owner + 1)));
}

void set_reference(std::vector<Clone>& clones, GitWords words, const std::string& folder) {
  if (!is_git(words)) return;
  fs::path where = folder.empty() ? "/" : folder;
  words = words.subspan(1);
  while (words.size() > 2 && (words[0] == "-C" || words[0] == "-c")) {
    if (words[0] == "-C") where /= words[1];
    words = words.subspan(2);
  }
  constexpr std::array<std::string_view, 3> kVerbs = {"checkout", "switch", "reset"};
  if (words.size() < 2 || !is_among(kVerbs, words[0])) return;
  const std::string reference = reference_set(words);
  const std::string path = plain_path(where);
  if (reference.empty()) return;
  for (Clone& clone : clones) {
    if (is_of_clone(clone, path)) clone.reference = reference;
  }
}

}  // namespace mlenv
