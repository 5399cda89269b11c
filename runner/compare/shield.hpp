#pragma once
// The bare host's programs stand in a folder of hard links to the store's files. Whatever writes
// into such a file in place writes into the image that all later runs have; so they can only read
// there.
#include <string>

#include "base/files.hpp"

namespace mlenv::compare {

/// From now on this process and all that it starts can only read in `folder`, in which nothing else
/// is mounted: in a mount namespace of their own, and for all others it stays as it was. Whoever is
/// not root needs a user namespace for that, in which ids are what they were. The process has one
/// thread. Empty: done; else why not, and the process may be left between the two.
std::string shield(const fs::path& folder);

}  // namespace mlenv::compare
