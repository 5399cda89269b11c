#pragma once
// A run and the layer that it keeps, or starts from.
#include <exception>
#include <memory>
#include <optional>

#include "runner/local/run.hpp"
#include "runner/record/kept_layers.hpp"

namespace mlenv {

/// Holds the layer that a run uses. A new one that no record names when an exception ends this
/// object goes with it: the run was none.
class UsedLayer {
 public:
  UsedLayer(KeptLayers layers, HeldLayer held, bool is_new)
      : layers_(std::move(layers)), held_(std::move(held)), is_new_(is_new) {}
  UsedLayer(const UsedLayer&) = delete;
  UsedLayer& operator=(const UsedLayer&) = delete;
  ~UsedLayer();

 private:
  KeptLayers layers_;
  std::optional<HeldLayer> held_;
  bool is_new_;
  int exceptions_ = std::uncaught_exceptions();
};

/// Has `run` use the layer that `start` names, which is made where it has no id yet and noted
/// there. What is returned holds it and must outlive the run; nullptr: the run keeps nothing.
/// Throws as KeptLayers does.
std::unique_ptr<UsedLayer> use_layer(const fs::path& store_root, RunStart& start, LocalRun& run);

}  // namespace mlenv
