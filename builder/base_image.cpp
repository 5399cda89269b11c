#include "builder/base_image.hpp"

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "images/stacked_trees.hpp"
#include "images/unpack.hpp"

namespace mlenv {

std::vector<Layer> BaseImageLayers::layers() const {
  inputs_.base_image(base_);
  std::vector<Layer> layers = base_.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].title = fmt::format("base layer {} of {}", i + 1, layers.size());
  }
  return layers;
}

ImageConfig BaseImageLayers::settings() const {
  if (!store_.has(base_.config.digest)) inputs_.base_image(base_);
  return parse_settings(store_.read(base_.config.digest, size_limit::kImageConfig));
}

BaseTree::BaseTree(Store& store, const Lock& lock, const std::vector<Layer>& layers,
                   Progress& progress) {
  std::vector<fs::path> trees;
  trees.reserve(layers.size());
  for (const Layer& layer : layers) trees.push_back(unpack_layer(store, layer, progress));
  if (!lock.base) {
    path_ = trees.at(0);
    return;
  }
  merged_.emplace(store.scratch());
  path_ = merged_->path() / "fs";
  StackedTrees{trees}.link_into(path_);
}

}  // namespace mlenv
