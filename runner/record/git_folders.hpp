#pragma once
// Where the git repository of a folder lies, found by mlenv itself: git(1) would obey what it finds
// on its way there, and a container may have written that.
#include <stdexcept>
#include <string>

#include "base/files.hpp"

namespace mlenv {

/// Why a repository does not say something; translated by whoever asked.
class NotKnown : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct GitFolders {
  fs::path top;     ///< of the work tree, canonical
  fs::path git;     ///< HEAD and index; canonical
  fs::path common;  ///< objects and references; `git` itself but in a linked work tree
  /// False: `git` lies outside of `top` and does not say that it belongs there, as one made by
  /// `git init --separate-git-dir`. What is in it may be told, but not passed on.
  bool own = true;
};

/// As git looks for one (gitrepository-layout(5)): `.git` in `folder` or above it, up to the end of
/// the file system. It may be a folder, or lead to one: of a submodule, of a linked work tree
/// (git-worktree(1)), or a separate one. Throws NotKnown where there is none, where it leads to the
/// repository of another folder, or where its `core.worktree` names one.
GitFolders find_git_folders(const fs::path& folder);

/// Throws NotKnown unless `own`: for whoever passes content on.
void require_own(const GitFolders& folders);

/// Whether there is a `.git` in `folder` or above it.
bool has_git_folders(const fs::path& folder);

}  // namespace mlenv
