#pragma once
// What recipe.lock holds: a Lock for each platform of the recipe. One platform's file is that
// lock's own text. Of several the first stands as it would alone, and below it what is different
// for the others: packages for every machine (Debian's `all`, wheels for `any`) are written once.
// Format: docs/lock.md, "Several platforms".
#include <string>
#include <string_view>
#include <vector>

#include "recipes/lock.hpp"

namespace mlenv {

struct LockSet {
  /// Sorted by platform, each once, never empty. Request, settings and epoch are the same in all.
  /// Each is what it would be alone, so that a platform more changes no other platform's image.
  std::vector<Lock> locks;

  /// nullptr: it is not locked for that.
  const Lock* find(std::string_view platform) const;
  /// `linux/amd64, linux/arm64`
  std::string platforms() const;
  friend bool operator==(const LockSet&, const LockSet&) = default;
};

/// Deterministic; ends in a newline. Of one lock the same as `render_lock`.
std::string render_locks(const LockSet& set);
/// Throws as `parse_lock` does.
LockSet parse_locks(std::string_view text, const fs::path& shown_path);
/// What `checksum` in the file says. Of one lock the same as `lock_digest`.
Digest locks_digest(const LockSet& set);

/// As `lock_differences`; what is not the same for all platforms begins with its own,
/// `linux/arm64: torch 2.14.1 → 2.15.0`. A platform more or less is a line.
std::vector<std::string> lock_set_differences(const LockSet& from, const LockSet& to);

/// A lock's packages with what other platforms' locks have too, each counted once.
struct PackageCounts {
  std::size_t wheels = 0;
  std::size_t debs = 0;
};
PackageCounts count_packages(const LockSet& set);

}  // namespace mlenv
