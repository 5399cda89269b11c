#pragma once
// The seccomp filter of a recorded run: which calls are asked about, which are answered without
// asking. Everything else goes to the kernel.
#include <cstdint>
#include <vector>

#include "base/handle.hpp"

namespace mlenv::sandbox {

/// Calls that the supervisor answers.
enum class Call : std::uint8_t {
  none,
  chown,
  lchown,
  fchown,
  fchownat,
  stat,
  lstat,
  fstat,
  newfstatat,
  statx,
  setxattr,
  lsetxattr,
  fsetxattr,
  getxattr,
  lgetxattr,
  fgetxattr,
  removexattr,
  lremovexattr,
  fremovexattr,
  chroot,
};

/// By system call number of this machine; `Call::none` for those not watched.
std::vector<Call> watched_calls();

/// Installs the filter on the calling thread, for it and all it starts, and returns the
/// notification descriptor. `isolate_network` also denies internet sockets (where no network
/// namespace does). Throws `sandbox-failed`.
Fd install_filter(bool isolate_network);

}  // namespace mlenv::sandbox
