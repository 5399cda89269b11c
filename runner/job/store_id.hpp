#pragma once
// Whether two machines mean the same folder when each speaks of its store.
#include <string>

#include "base/files.hpp"

namespace mlenv::job {

/// Of the file `version`: its number in its file system and when it was written, which all who
/// mount that file system see alike. A store that was copied with its file system has the same one;
/// whoever takes two stores for one must only lose time by it. Empty: there is no store.
std::string store_id(const fs::path& store);

}  // namespace mlenv::job
