#pragma once
// What a recipe or a lock tells of its image before any byte of it is there. All else is unknown:
// known after the build.
#include <vector>

#include "images/inspect/image_facts.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// Of kind `recipe`: framework and CUDA as far as the recipe names them, demands, environment, and
/// what processors the packages are known to need (images/inspect/cpu_table.hpp).
ImageFacts image_facts_of(const Recipe& recipe, const std::string& platform);
/// Of kind `lock`: the wheels' CUDA, cuDNN, NCCL and frameworks; device code of builds that
/// recipes/compat knows, and processors. What an image as base brings along is unknown.
ImageFacts image_facts_of(const Lock& lock);

}  // namespace mlenv
