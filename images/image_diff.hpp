#pragma once
// What differs between two images, layer by layer and value by value of their configs.
#include <string>
#include <vector>

#include "base/value_change.hpp"
#include "images/oci.hpp"

namespace mlenv {

struct LayerPresence {
  enum class Where {
    from_only,
    to_only,
    both,
    both_packed_differently  ///< one tar in two blobs: `layer` is the second image's
  };
  Where where = Where::both;
  Layer layer;
};

struct ImageDiff {
  /// Of the configs: `env NAME`, `label NAME`, `workdir`, `command`, …; `created` too. Where
  /// nothing but the manifests' own wording differs, `manifest` alone.
  ValueChanges values;
  /// Each once: those of the first alone, in its order, then those of the second in its order.
  std::vector<LayerPresence> layers;
  /// The same layers one above the other, so the same files.
  bool same_files = false;
  /// What somebody who has the first image must fetch for the second: blobs that are not its own.
  std::size_t fetch_layers = 0;
  std::uint64_t fetch_bytes = 0;
};

/// Throws `bad-image` for a config that cannot be read.
ImageDiff diff_images(const Image& from, const Image& to);

}  // namespace mlenv
