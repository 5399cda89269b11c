#pragma once
#include "images/oci.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// What a container of the locked image runs, where and with which environment: PATH to the
/// environment's programs first, the NVIDIA container toolkit's variables where the wheels carry
/// CUDA, the recipe's own variables over all; labels that name the lock and, where there are some,
/// the digest of the project's files.
ImageConfig image_config(const Lock& lock, const std::optional<Digest>& files);

}  // namespace mlenv
