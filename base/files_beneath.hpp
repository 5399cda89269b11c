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

}  // namespace mlenv
