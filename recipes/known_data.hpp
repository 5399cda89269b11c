#pragma once
// Digests of data sets, read once: a store remembers them until names, sizes, times or inodes of
// their files change.
#include "base/progress.hpp"
#include "images/store.hpp"
#include "recipes/data_list.hpp"

namespace mlenv {

/// As data_digest has it. Throws `file-changed` where something wrote meanwhile.
Digest known_data_digest(Store& store, const fs::path& path, Progress& progress);
/// What somebody else has read, whose data_fingerprint it was before: it is not read again. Where
/// it has another one now nothing is remembered.
void remember_data(Store& store, const fs::path& path, const Digest& fingerprint,
                   const Digest& digest);

/// A blob of the store, which holds the data set's list (data_list.hpp).
struct ListedData {
  Digest digest;                 ///< of the data set
  Digest list;                   ///< the blob
  std::uint64_t size_bytes = 0;  ///< of all files
};
ListedData listed_data(Store& store, const fs::path& path, Progress& progress);
/// Such a blob, read. Throws `absent`, `damaged`, `bad-data`.
DataList read_data_list(const Store& store, const Digest& list);

}  // namespace mlenv
