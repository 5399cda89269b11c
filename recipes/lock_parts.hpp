#pragma once
// What a lock file says of one platform, and the packages that platforms share.
#include <string>
#include <vector>

#include "recipes/lock_set.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

/// The tables `resolved`, `base` and `packages`, each in `folder` (empty, or `others."…".`).
std::string render_part(const Lock& lock, const std::string& folder);
/// The first line, `version` and `revision`; then all up to those tables.
std::string render_head(int revision);
std::string render_common(const Lock& lock);

/// Of another platform than the first: what of its packages must be written.
struct OtherPackages {
  Lock own;  ///< the lock, less what is in the first in the same words
  /// Names of packages for every machine that the first has and this one has not.
  std::vector<std::string> without_debs;
  std::vector<std::string> without_wheels;
};
OtherPackages without_shared(const Lock& first, const Lock& other);

/// Adds to `lock`, which holds its own packages, what it shares with `first`; `table` may name what
/// it is without. A name there of what is not shared is a mistake.
void add_shared(const TomlReader& reader, const TomlValue& table, const Lock& first, Lock& lock);
std::string render_without(const OtherPackages& other, const std::string& folder);

}  // namespace mlenv
