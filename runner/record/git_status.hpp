#pragma once
// What differs from a commit, without a filter or a submodule's program having a say.
#include <string>
#include <vector>

#include "runner/record/git_repository.hpp"

namespace mlenv {

/// Names, from the top of the repository, of files below the project that `git status` shows:
/// changed, staged, new, conflicting; sorted. `without`: paths below the project that do not count.
///
/// A file of Git LFS's is compared with what its pointer says. One of another filter counts as
/// changed where its content is not the index's and the index does not know its size and times:
/// `git status` by hand has it known again. A submodule is asked the same way, and counts as
/// changed as git has it, `ignore` in `.gitmodules` too.
std::vector<std::string> changed_files(const GitRepository& repository,
                                       const std::vector<std::string>& without);

}  // namespace mlenv
