#pragma once
// The devices that this machine can give, NVIDIA's among them where nobody has described them.
#include "runner/cdi/gpus.hpp"

namespace mlenv {

/// Adds NVIDIA's GPUs to a registry that has none of them: by nvidia-ctk where it is installed
/// (what it says is remembered below `cache`), else by what the driver shows. Nothing where no
/// driver runs.
void add_nvidia(CdiRegistry& registry, const fs::path& cache, const AskMig& ask = {});

}  // namespace mlenv
