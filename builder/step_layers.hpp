#pragma once
// What a step gave, as the store remembers it under the step's key.
#include <optional>
#include <vector>

#include "images/oci.hpp"
#include "images/store.hpp"

namespace mlenv {

/// Layers of a step made before, when every one of them is still in the store.
std::optional<std::vector<Layer>> find_layers(const Store& store, const Digest& key);
void remember_layers(Store& store, const Digest& key, const std::vector<Layer>& layers);

}  // namespace mlenv
