#include "runner/local/layer_use.hpp"

#include "base/error.hpp"
#include "base/log.hpp"

namespace mlenv {

UsedLayer::~UsedLayer() {
  if (!is_new_ || std::uncaught_exceptions() == exceptions_) return;
  held_.reset();
  try {
    (void)layers_.remove_unnamed();
  } catch (const std::exception& error) {
    log::debug("kept layers stay: {}", error.what());
  }
}

std::unique_ptr<UsedLayer> use_layer(const fs::path& store_root, RunStart& start, LocalRun& run) {
  if (!start.layer) return nullptr;
  RecordedLayer& wanted = *start.layer;
  const KeptLayers layers{store_root};
  const bool is_new = wanted.id.empty();
  HeldLayer layer = is_new ? layers.make(start.image.digest)
                           : layers.hold(wanted.id, start.image.digest, wanted.kept);
  wanted.id = layer.id();
  wanted.generation = layer.generation();
  run.layer = LayerUse{layer.folder(), wanted.kept};
  run.fds.layer = layer.fd();
  return std::make_unique<UsedLayer>(layers, std::move(layer), is_new);
}

}  // namespace mlenv
