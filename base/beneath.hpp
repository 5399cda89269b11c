#pragma once
// Paths in which somebody else has a say — an image, a program in a container, an archive —
// resolved below an open folder. Whatever is opened on their behalf comes by here, so that neither
// a link nor `..` makes mlenv touch anything else, also while they rename folders meanwhile.
#include <sys/types.h>
#include <optional>
#include <string>

#include "base/handle.hpp"

namespace mlenv {

enum class Links {
  inside,  ///< lead where they lead for a process whose root is the folder (chroot(2))
  below,   ///< are followed as long as they stay below the folder; else EXDEV
  none,    ///< are refused: ELOOP
};

/// open(2) of `path` below the open folder `root`; O_CLOEXEC is added. `..` never leads above
/// `root`: with `Links::inside` it stays there, as does a path that begins with `/`; else both are
/// EXDEV. Links of /proc that lead to another process's files are not followed whatever `links`
/// says. With O_NOFOLLOW and O_PATH a link at the end is opened itself. Returns no descriptor, and
/// errno, where it cannot be opened; throws nothing.
///
/// By openat2(2), and where a kernel or a seccomp filter has no such thing by `walk_beneath`.
Fd open_beneath(int root, const std::string& path, int flags, Links links, mode_t mode = 0);

/// The same, part by part.
Fd walk_beneath(int root, const std::string& path, int flags, Links links, mode_t mode = 0);

/// Where the link `name` in the open `folder` leads; with an empty name `folder` is itself one
/// (O_PATH | O_NOFOLLOW). Nothing, with errno, where it is none.
std::optional<std::string> link_at(int folder, const std::string& name);

}  // namespace mlenv
