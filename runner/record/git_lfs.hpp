#pragma once
// Files that Git LFS keeps outside of the repository (git-lfs's own specification, docs/spec.md):
// the repository has a pointer, the work tree the content. git-lfs itself is not run: its settings,
// and programs that they name, come from the repository.
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {

struct LfsPointer {
  Digest content;
  std::uint64_t size_bytes = 0;
};

/// Longer ones are none.
inline constexpr std::uint64_t kLongestPointer = 1023;

/// nullopt: the text is no pointer, or one of another kind of digest or with extensions.
std::optional<LfsPointer> parse_lfs_pointer(std::string_view text);

/// Whether the file at `path` below `top` (no link) has the content. False where that is not known
/// by `until`.
bool has_content(const fs::path& top, const std::string& path, const LfsPointer& pointer,
                 std::chrono::steady_clock::time_point until);

/// Files below `folder` that are pointers, by their paths in it.
std::map<std::string, LfsPointer> lfs_pointers(const fs::path& folder);

/// Puts the content in place of the pointer at `path` below `folder`, from `objects` (`lfs/objects`
/// of the repository). Throws NotKnown (git_folders.hpp) where it is not there.
void fill_lfs_file(const fs::path& folder, const std::string& path, const LfsPointer& pointer,
                   const fs::path& objects);

}  // namespace mlenv
