#pragma once
// The project's folder as a content-addressed snapshot: one archive in the store, whose digest says
// what code a job ran, the same on every node and in every record (docs/jobs.md, "Code").
//
// The archive is a tar of files, links and the folders that they lie in: sorted by name, owner 0,
// times 0, modes 0755 for folders and what its owner may execute, else 0644. So the same content
// has the same digest on any machine, as any user, under any umask. Empty folders do not travel.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {
class Store;
}  // namespace mlenv

namespace mlenv::job {

struct CodeSnapshot {
  Digest digest;                       ///< of the archive, a blob of the store
  std::uint64_t files = 0;             ///< links among them
  std::uint64_t bytes = 0;             ///< in those files
  std::optional<std::string> commit;   ///< of a clean checkout
  std::vector<std::string> kept_back;  ///< for names that secrets have; sorted
};

/// Beyond them a folder is taken for data that lies among the code.
struct CodeBounds {
  std::uint64_t most_bytes = std::uint64_t{512} << 20U;
  std::uint64_t most_files = 100'000;
};

/// The archive's blob may be read by its owner alone, whatever the umask is.
///
/// What `folder` (with what lies below it) holds now: in a git repository what git tracks and what
/// it neither tracks nor ignores, submodules and repositories within it among them; else all. Of
/// what git does not track, version control, caches and files that by their names hold secrets stay
/// behind (recipes/ignore.hpp). `.mlenvignore` holds everywhere, `.dockerignore` where there is no
/// git and no `.mlenvignore`. Sockets, pipes and devices stay behind.
/// Throws `bad-code` (usage) for a link that leads out of the folder, for more than `bounds`
/// (naming what is large), and where git refuses to say what is in its repository;
/// `ignore-invalid`; `file-changed` for a file that is being written.
/// `without`: files and folders that are none of it (data that travels by itself).
CodeSnapshot snapshot_of(Store& store, const fs::path& folder, const CodeBounds& bounds = {},
                         const std::vector<fs::path>& without = {});

/// The same of a commit, as a checkout would have it: all that it holds. `revision` is anything
/// that git takes for a commit; where `folder` is a part of its repository, it is taken alone.
/// Throws `no-commit` with git's words too, and `bad-code` for a commit with submodules.
CodeSnapshot snapshot_of_commit(Store& store, const fs::path& folder, const std::string& revision,
                                const CodeBounds& bounds = {});

/// Words of `--code`: `FOLDER`, or `FOLDER@REVISION`. An `@` belongs to a folder that has one.
struct CodeWords {
  fs::path folder;
  std::string revision;  ///< empty: as it lies there now
};
/// Throws `bad-code` (usage) where there is no such folder.
CodeWords parse_code(std::string_view text);

}  // namespace mlenv::job
