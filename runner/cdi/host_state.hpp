#pragma once
// What tells cheaply that a host is still as it was: for what is remembered of it.
#include <string>

#include "base/files.hpp"

namespace mlenv {

/// Which file that is and when it was written; that it is absent where it is.
std::string file_stamp(const fs::path& path);
/// This boot of this machine.
std::string boot_state();
/// That, NVIDIA's driver (kernel module, and what the linker's cache says of libraries) and the
/// device files of its GPUs. A few files are asked for, and a folder is listed.
std::string nvidia_state();

}  // namespace mlenv
