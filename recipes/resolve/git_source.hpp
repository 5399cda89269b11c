#pragma once
// Commits of git repositories, through the machine's `git` with its user's settings (ssh keys,
// credential helpers): it never asks anybody, runs no hooks, and is given a bounded time.
#include <optional>
#include <string>

#include "base/files.hpp"
#include "base/progress.hpp"
#include "recipes/source_tree.hpp"

namespace mlenv {

/// The full commit that a branch, a tag or the beginning of a commit's name means now; an empty
/// reference is the default branch. As pip and uv have it, a branch goes before a tag of its name.
/// Asks nothing where `reference` is a full commit. Throws `no-git`, `git-failed` with what git
/// said, `no-commit`.
std::string find_git_commit(const std::string& url, const std::string& reference,
                            Progress& progress);

/// The commit's files, as they are stored: no filter, attribute or setting changes them, so that
/// files kept by Git LFS are the pointers to them. From the cache, else fetched into it; processes
/// may do so at once: one of them fetches, and what others read meanwhile stays whole. What is
/// cached and not the `expected` tree, or with null not the one that was fetched, is fetched anew.
/// Throws as above, `no-commit` also for one that is gone, and `bad-source` for a commit with
/// submodules, whose files are not in it.
SourceTree provide_git_tree(const std::string& url, const std::string& commit,
                            const std::optional<Digest>& expected, const fs::path& cache,
                            Progress& progress);

/// `v1.2-3-g0123456`: the nearest tag with a digit before the commit and the commits since, as
/// setuptools-scm asks git for it; empty where there is none. Fetches the history, without files
/// where the server can do that. Throws as above.
std::string describe_git_commit(const std::string& url, const std::string& commit,
                                Progress& progress);

}  // namespace mlenv
