#pragma once
// Files of a folder that somebody else may write to while they are read, as a container does to the
// project: no link is followed, nothing outside the folder is opened, and no pipe is waited for.
#include <cstdint>
#include <optional>
#include <string>

#include "base/files.hpp"

namespace mlenv {

/// The folder itself, which paths of the functions below start at. Links in `path` are followed.
/// Throws as open_file() does.
Fd open_folder(const fs::path& path);

/// A regular file at `path` (relative, no `..`) below the open `folder`, for reading. Empty, with
/// errno, where it is absent (ENOENT), reached through a link (ELOOP, ENOTDIR), outside (EXDEV), or
/// no regular file (EINVAL).
Fd open_file_beneath(int folder, const std::string& path);

/// Its content. nullopt where it is absent or as above; throws `too-large` past `limit` bytes.
std::optional<std::string> read_file_beneath(int folder, const std::string& path,
                                             std::uint64_t limit);

/// open(2) of an absolute path that had no link in it when it was looked up (realpath(3), and names
/// that a walk found below it); O_CLOEXEC is added. Empty, with ELOOP, where a link is met now, in
/// whichever part: somebody has put it there since.
Fd open_canonical(const fs::path& path, int flags);

/// A folder so, for listing; throws where it cannot be opened.
Fd open_canonical_folder(const fs::path& path);

/// A regular file so, for reading. Throws `file-changed` where a link or something else is in its
/// place, or nothing any more; else as open_file() does.
Fd open_canonical_file(const fs::path& path);

/// A file below the folder of a data set, or the set itself where `path` is empty: links are
/// followed as long as they stay below. Throws as open_canonical_file().
Fd open_file_of_set(const fs::path& set, const std::string& path);

/// Where the link `name` in the open `folder` leads. Throws where it is none.
std::string read_link_at(int folder, const std::string& name);

}  // namespace mlenv
