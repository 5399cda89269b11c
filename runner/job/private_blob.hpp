#pragma once
// Blobs that are their owner's alone, whoever else may read the store's folders: code, lists of
// data.
#include <sys/stat.h>

#include "images/store.hpp"

namespace mlenv::job {

inline constexpr mode_t kPrivateBlob = 0600;

/// Of a file that is being written: before anything is in it. Throws what the kernel says.
void make_private(const Store::Staged& staged);

/// Of a blob that is there, perhaps for longer than blobs are made private. One that belongs to
/// somebody else stays as it is.
void keep_private(const Store& store, const Digest& digest);

}  // namespace mlenv::job
