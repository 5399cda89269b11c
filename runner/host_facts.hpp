#pragma once
// What this machine is, as far as a new recipe depends on it.
#include <string>

#include "base/files.hpp"
#include "recipes/init/host_choice.hpp"

namespace mlenv {

/// Debian's or Ubuntu's release by /etc/os-release (os-release(5)); the NVIDIA driver's version by
/// /proc/driver/nvidia/version or /sys/module/nvidia/version. `root` is `/`, or a folder of
/// fixtures in tests; for `/` nvidia-smi is asked too, where neither file exists (as in WSL). What
/// cannot be found out is empty.
HostFacts probe_host(const fs::path& root = "/");

}  // namespace mlenv
