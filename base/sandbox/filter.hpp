#pragma once
// The sandbox's seccomp filter: which calls are asked about in a recorded run, which are answered
// without asking, and which go to the kernel, as in a container (base/confinement.hpp).
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

struct FilterTerms {
  bool supervised = true;    ///< a recorded run: `Call`s are asked about
  bool shares_host = false;  ///< no namespaces: internet sockets and other processes are denied
};

/// Installs the filter on the calling thread, for it and all it starts: the calls of
/// base/confinement.hpp, but for what a supervised one has answered otherwise, and of this
/// machine's own architecture alone. Returns the notification descriptor of a supervised one.
/// Throws `sandbox-failed`.
Fd install_filter(const FilterTerms& terms);

}  // namespace mlenv::sandbox
