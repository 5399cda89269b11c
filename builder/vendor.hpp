#pragma once
// Copies of everything that a lock names, in one folder, from which builds take them when package
// sources do not have them any more.
#include <vector>

#include "base/progress.hpp"
#include "builder/inputs.hpp"
#include "builder/locked_files.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

struct VendoredFile {
  LockedFile file;
  fs::path path;         ///< in the folder
  bool fetched = false;  ///< it was not there before
};

/// Wheels, also those that were built here, the source releases and tools that built them, Debian
/// packages, the recipe's own Python, configuration and layers of a base that is an image. Each
/// lies in `folder` under its name, or under its digest where another file has the name, whole or
/// not at all; what is there is verified and not fetched again. The copies are listed in the
/// folder's mark (vendored.hpp), so that they are part of no source; what was there without it is
/// the user's. What the lock does not name stays as it is, also under such a name. In the order of
/// names. Throws `input-gone` and `input-changed`, naming all.
std::vector<VendoredFile> vendor(const Lock& lock, const fs::path& folder, Store& store,
                                 Inputs& inputs, Progress& progress);

}  // namespace mlenv
