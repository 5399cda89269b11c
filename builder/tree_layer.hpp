#pragma once
// A folder as a layer: what is not spliced (the Debian base). Sorted, normalised, compressed by the
// frozen encoder in parallel.
#include "base/pool.hpp"
#include "base/sandbox/sandbox.hpp"
#include "images/oci.hpp"
#include "images/store.hpp"

namespace mlenv {

struct TreeToPack {
  fs::path root;
  Owners owners;
  FileCapabilities capabilities;  ///< written as SCHILY.xattr.security.capability
  std::int64_t mtime = 0;
  std::string title;
};
/// Writes all below `root` as a tar of sorted paths with time `mtime`, modes as they are, owners as
/// `owners` says (else 0:0), hard links kept, into the store as a whole blob. Sockets are left out.
Layer pack_tree(const TreeToPack& tree, Store& store, Pool& pool);

}  // namespace mlenv
