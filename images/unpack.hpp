#pragma once
// Layers as trees: what overlayfs stacks for a run.
#include "base/progress.hpp"
#include "images/store.hpp"

namespace mlenv {

/// Unpacks the layer into the store unless it is there; returns its `fs` folder. The tar is hashed
/// while it passes and must match `layer.diff_id` (`damaged`). Paths are resolved beneath the
/// tree's root; entries that would leave it throw `bad-layer`. Owners and devices are set when the
/// caller is root, else files belong to the caller. Whiteouts (image-spec layer.md) become
/// overlayfs whiteouts and opaque marks.
fs::path unpack_layer(Store& store, const Layer& layer, Progress& progress);

/// All layers of an image, in parallel; the bottom one first.
std::vector<fs::path> unpack_image(Store& store, const Image& image, Progress& progress);

}  // namespace mlenv
