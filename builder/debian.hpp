#pragma once
// A Debian base from its packages: unpacked natively, configured by the image's own dpkg in the
// sandbox with ownership recorded, then normalised. No root, no network; the same tree every time
// (docs/layers.md, "Debian base").
#include <vector>

#include "base/progress.hpp"
#include "base/sandbox/sandbox.hpp"
#include "builder/debian/package.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

struct DebianBase {
  Owners owners;                  ///< of every path in the tree that is not 0:0
  FileCapabilities capabilities;  ///< `security.capability` of files (the tree itself has none)
};

/// `packages[i]` is the file of `lock.debs[i]`. Fills `root` (an empty folder). Times of all
/// entries are set to `lock.epoch`, and every entry belongs to the caller, whatever `owners` says.
/// Other users must not get at `root` (set-user-ID programs lie in it). Throws `base-failed` with
/// the maintainer script's last lines, `sandbox-failed` where there is no sandbox to be had.
DebianBase build_debian_base(const Lock& lock, const std::vector<fs::path>& packages,
                             const fs::path& root, Progress& progress);

/// Throws `bad-deb` where a package's name, version or architecture is not what the lock, and with
/// it the archive's index, says.
void require_package(const debian::Package& package, const LockedDeb& wanted);

}  // namespace mlenv
