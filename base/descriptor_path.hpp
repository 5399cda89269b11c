#pragma once
// An open file or folder by a name, for calls that take names alone (proc(5), /proc/PID/fd): it is
// that one whatever has its own name by now.
#include <string>

#include "base/handle.hpp"

namespace mlenv {

/// For this process, as long as `open` is open.
inline std::string descriptor_path(const Fd& open) {
  return "/proc/self/fd/" + std::to_string(open.get());
}

}  // namespace mlenv
