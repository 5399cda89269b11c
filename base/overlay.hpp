#pragma once
// An overlay of many read-only trees and one writable folder (Documentation/filesystems/overlayfs).
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// How the lower folders reach the kernel. mount(2) takes one page (4 KiB) of options and
/// fsconfig(2) strings of 255 bytes, so that the paths of many layers fit neither.
enum class OverlayMethod {
  automatic,    ///< `append`, and where the kernel has no such thing `short_names`
  append,       ///< fsconfig(2) `lowerdir+`, one call for each folder (Linux 6.7)
  short_names,  ///< mount(2) with links `l/0:l/1:…`, relative to the working folder
};

struct Overlay {
  std::vector<fs::path> lowers;  ///< absolute, the bottom one first
  fs::path folder;               ///< `upper`, `work` and `root` are made in it
  bool user_xattr = false;       ///< within a user namespace (option `userxattr`, Linux 5.11)
  OverlayMethod method = OverlayMethod::automatic;
  /// What is written is to outlive the mount: it goes to the disk as other files do.
  bool lasting = false;
};

/// The kernel's OVL_MAX_STACK.
inline constexpr std::size_t kMaxLowers = 500;

/// Mounts it in the calling process's mount namespace and returns `folder`/root. Changes the
/// working folder. `upper` and `work` may be links. Unless it is `lasting`, the upper layer is not
/// synced to disk (option `volatile`): it is thrown away anyhow. Throws `no-overlay` with what the
/// kernel says.
fs::path mount_overlay(const Overlay& wanted);

}  // namespace mlenv
