#pragma once
// A folder as a layer: what is not spliced (the Debian base). Sorted, normalised, compressed by the
// frozen encoder in parallel.
#include "base/pool.hpp"
#include "base/sandbox/sandbox.hpp"
#include "images/oci.hpp"
#include "images/store.hpp"

namespace mlenv {

/// Writes all below `root` as a tar of sorted paths with time `mtime`, modes as they are, owners as
/// `owners` says (else 0:0), hard links kept, into the store as a whole blob. Sockets are left out.
Layer pack_tree(const fs::path& root, const Owners& owners, std::int64_t mtime, std::string title,
                Store& store, Pool& pool);

}  // namespace mlenv
