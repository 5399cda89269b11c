#pragma once
// A Debian base from its packages: unpacked natively, configured by the image's own dpkg in the
// sandbox with ownership recorded, then normalised. No root, no network; the same tree every time
// (docs/layers.md, "Debian base").
#include <chrono>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/sandbox/sandbox.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

struct DebianBase {
  Owners owners;  ///< of every path in the tree that is not 0:0
};

/// `packages[i]` is the file of `lock.debs[i]`. Fills `root` (an empty folder). Times of all entries
/// are set to `lock.epoch`. Throws `base-failed` with the maintainer script's last lines.
DebianBase build_debian_base(const Lock& lock, const std::vector<fs::path>& packages,
                             const fs::path& root, Progress& progress);

}  // namespace mlenv
