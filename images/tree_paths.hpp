#pragma once
// Paths of a layer, resolved beneath an open folder.
#include <fcntl.h>
#include <string>
#include <string_view>

namespace mlenv {

inline constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

/// Throws `bad-layer` for an empty or absolute path, one that holds `..` or a NUL.
void check_layer_path(std::string_view path);

/// Throws `bad-layer` where a part of the path begins with `.wh.`: in a layer that name stands for
/// the absence of another (OCI image-spec layer.md, "Whiteouts").
void check_no_whiteout(std::string_view path);

/// Opens the folder `path` below the folder `at`; links are followed as long as they stay below.
/// Returns a descriptor, or -1 with errno (EXDEV: a link leads out).
int open_beneath(int at, const std::string& path);

}  // namespace mlenv
