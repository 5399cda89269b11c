#pragma once
// Which code a run worked with: the git repository that its project folder lies in.
#include "base/files.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv {

/// Asks git, which neither changes the repository nor fetches, nor runs a program that the
/// repository names (fsmonitor, filters). Of the project folder alone, where that is a part of its
/// repository. Unknown, each with the reason, where git is not there, the folder is in no
/// repository, or belongs to somebody else, as git sees it; names of more than 1000 changed files
/// too.
///
/// `changed_digest` is the sha256 of one line for each changed file, sorted by name: the sha256 of
/// its content (a link's is of its target), `mode`, name; or `gone` and name. Contents beyond 256
/// MB in all, such as data that lies among the code, count with size and time instead: then the
/// digest is unknown.
///
/// `without`: paths below the project that do not count, such as what runs write there.
CodeState code_state(const fs::path& project, const std::vector<std::string>& without = {});

/// Writes the files that the project has in a commit of its repository into an empty `folder`, by
/// their paths in the repository, and returns the project's place there. Nothing else is told of
/// it: neither the project nor the repository changes. Throws `no-commit` with git's words.
///
/// `most_bytes`: of the content of files that Git LFS keeps.
fs::path export_commit(const fs::path& project, const std::string& commit, const fs::path& folder,
                       std::uint64_t most_bytes = std::uint64_t{64} << 30U);

/// Files of the project folder that differ between two commits of its repository, sorted, as git
/// names them. Unknown as above, and where the repository does not have one of the commits.
Texts files_between(const fs::path& project, const std::string& from, const std::string& to);

}  // namespace mlenv
