#pragma once
// The job's code on a node: an archive from the store, unpacked.
#include "images/store.hpp"

namespace mlenv::job {

/// Into `folder`, which is made; returns the digest that was computed of the archive. Nothing is
/// written outside of it, and no link leads out of it: `bad-code` for an archive that holds such,
/// or anything but files, folders and links; `damaged` where the archive is not what it is called.
std::string unpack_code(const Store& store, const Digest& archive, const fs::path& folder);

}  // namespace mlenv::job
