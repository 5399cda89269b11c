#include "runner/local/layer_use.hpp"

namespace mlenv {

std::optional<HeldLayer> use_layer(const fs::path& store_root, RunStart& start, LocalRun& run) {
  if (!start.layer) return std::nullopt;
  RecordedLayer& wanted = *start.layer;
  const KeptLayers layers{store_root};
  HeldLayer layer = wanted.id.empty() ? layers.make(start.image.digest)
                                      : layers.hold(wanted.id, start.image.digest, wanted.kept);
  wanted.id = layer.id();
  run.layer = LayerUse{layer.folder(), wanted.kept};
  run.fds.layer = layer.fd();
  return layer;
}

}  // namespace mlenv
