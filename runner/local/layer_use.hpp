#pragma once
// A run and the layer that it keeps, or starts from.
#include <optional>

#include "runner/local/run.hpp"
#include "runner/record/kept_layers.hpp"

namespace mlenv {

/// Has `run` use the layer that `start` names, which is made where it has no id yet and noted
/// there. What is returned holds it and must outlive the run; nullopt: the run keeps nothing.
/// Throws as KeptLayers does.
std::optional<HeldLayer> use_layer(const fs::path& store_root, RunStart& start, LocalRun& run);

}  // namespace mlenv
