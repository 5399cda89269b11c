#pragma once
// Paths of a root folder in which a package's scripts have been at work: a folder may have become a
// link to anywhere, which to them is inside that root and to us is not.
#include <optional>
#include <string>

#include "base/files.hpp"

namespace mlenv::debian {

/// `path` (relative) with no link on the way, opened O_PATH with `flags` added; a link at its end
/// is opened itself, with O_DIRECTORY refused. Without a descriptor, and with errno, where it
/// cannot be: ELOOP for a link, EXDEV for `..`.
Fd open_real(int root, const std::string& path, int flags = 0);
/// The same for the folder that `path` is in; `root` itself for a path of one part.
Fd open_real_parent(int root, const std::string& path);

/// A file's content as a program of the tree reads it: links and `..` stay inside. nullopt where
/// there is no such regular file.
std::optional<std::string> read_inside(int root, const std::string& path);

/// Throws `base-failed` where one of the folders that the build itself writes to (dpkg's, and those
/// it cleans) is a link.
void require_real_folders(const fs::path& root);

}  // namespace mlenv::debian
