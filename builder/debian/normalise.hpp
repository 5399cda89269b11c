#pragma once
// What two builds of the same packages would differ in, taken out of a configured base.
#include <cstdint>

#include "base/files.hpp"

namespace mlenv::debian {

/// Removes what belongs to one machine or one moment: host keys, machine ids, snakeoil
/// certificates, logs, caches that are made again on demand, backups, package lists, temporary
/// files. Afterwards `apt-get install` works and the first start makes new keys where needed.
void normalise(const fs::path& root);

/// Sets access and modification times of every entry below `root`, and of itself, to `epoch`.
void set_times(const fs::path& root, std::int64_t epoch);

}  // namespace mlenv::debian
