#pragma once
// Debian packages on top of a base that is an image: put there by the base's own dpkg in the
// sandbox, without network; what that changed, normalised, as one layer (docs/layers.md, "Debian
// packages on an image").
#include <vector>

#include "base/pool.hpp"
#include "base/progress.hpp"
#include "images/oci.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

struct SystemJob {
  const Lock& lock;
  const std::vector<fs::path>& packages;  ///< files of `lock.debs`
  const std::vector<Layer>& base;         ///< lowest first
};

/// The layer is in the store, not unpacked. Throws `bad-deb`, `base-failed` with what dpkg or a
/// maintainer script said last, and as the sandbox does; it needs one with namespaces.
Layer make_system_layer(const SystemJob& job, Store& store, Pool& pool, Progress& progress);

}  // namespace mlenv
