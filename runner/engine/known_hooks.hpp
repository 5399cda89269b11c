#pragma once
// Docker has no words for hooks. Those of NVIDIA's toolkit that CDI specifications of GPUs have do
// few things, which the keeper can do as well before the command starts.
#include <cstdint>
#include <string>
#include <vector>

#include "runner/cdi/spec.hpp"

namespace mlenv {

/// What they come to.
struct HookWork {
  struct Link {
    std::string path;
    std::string leads_to;
    friend bool operator==(const Link&, const Link&) = default;
  };
  struct Mode {
    std::string path;
    std::uint32_t mode = 0;
    friend bool operator==(const Mode&, const Mode&) = default;
  };
  std::vector<Link> links;                   ///< `create-symlinks`
  std::vector<Mode> modes;                   ///< `chmod`
  std::vector<std::string> library_folders;  ///< `update-ldcache`: for the dynamic linker's cache
  bool shows_gpus = false;     ///< `update-application-profile`: which GPUs EGL and Vulkan may use
  bool limits_memory = false;  ///< `apply-cuda-memory-limits`: where variables ask for it
};

/// Of all hooks together. Throws `no-device` for one that is not known.
HookWork work_of_hooks(const std::vector<CdiHook>& hooks);

}  // namespace mlenv
