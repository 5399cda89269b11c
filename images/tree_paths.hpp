#pragma once
// Paths of a layer, resolved beneath an open folder.
#include <fcntl.h>
#include <sys/stat.h>
#include <array>
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace mlenv {

/// A file `.wh.NAME` stands for the absence of NAME, `.wh..wh..opq` for that of all that lower
/// layers have in its folder (OCI image-spec layer.md, "Whiteouts").
inline constexpr std::string_view kWhiteoutPrefix = ".wh.";
inline constexpr std::string_view kOpaqueName = ".wh..wh..opq";
/// AUFS's own notes, which layers of long ago hold (`.wh..wh.plnk`).
inline constexpr std::string_view kAufsPrefix = ".wh..wh.";

/// A character device 0/0 (Documentation/filesystems/overlayfs, "whiteouts and opaque
/// directories").
bool is_whiteout(const struct stat& status);

/// How overlayfs marks a folder that shows nothing of lower layers: mounts with `userxattr` read
/// the first, others the second.
inline constexpr std::array<const char*, 2> kOpaqueMarks = {"user.overlay.opaque",
                                                            "trusted.overlay.opaque"};
/// Whether the folder has one of them.
bool has_opaque_mark(const fs::path& folder);

inline constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

/// Throws `bad-layer` for an empty or absolute path, one that holds `..` or a NUL, and one that is
/// longer than Linux takes.
void check_layer_path(std::string_view path);

/// Throws `bad-layer` where a part of the path begins with `.wh.`.
void check_no_whiteout(std::string_view path);

/// Opens the folder `path` below the folder `at`; links are followed as long as they stay below.
/// Returns a descriptor, or -1 with errno (EXDEV: a link leads out).
int open_beneath(int at, const std::string& path);

}  // namespace mlenv
