#pragma once
// Recipe → Lock.
#include <functional>
#include <variant>

#include "base/http.hpp"
#include "base/progress.hpp"
#include "recipes/lock.hpp"
#include "recipes/platforms.hpp"
#include "recipes/resolve/base_image.hpp"
#include "recipes/resolve/conflict.hpp"
#include "recipes/resolve/debian.hpp"
#include "recipes/resolve/source_release.hpp"
#include "recipes/resolve/wheels.hpp"

namespace mlenv {

struct ResolveOptions {
  std::string platform{kUsualPlatform};
  fs::path cache;                  ///< $XDG_CACHE_HOME/mlenv
  const Lock* previous = nullptr;  ///< parts whose request did not change are kept as they are
  /// Of another platform of the recipe: versions that are taken here too, where they can be had
  /// and `previous` tells none.
  const Lock* sibling = nullptr;
  bool upgrade = false;              ///< resolve everything anew
  std::vector<std::string> moved{};  ///< Python packages of `previous` that may move (normalised)
  std::int64_t epoch = 0;            ///< SOURCE_DATE_EPOCH at locking, else 0
  /// For a base that is an image: `find_base` with what it needs. Not called where the previous
  /// lock's is kept; `pinned` where that one's image stays and the recipe asks something else of
  /// it.
  std::function<std::variant<FoundBase, Conflict>(const std::optional<Digest>& pinned)> find_base;
  /// Builds packages without a wheel, on bases made from packages; null: they are a Conflict.
  BuildRelease build = nullptr;
  /// Debian packages and Python are all that is resolved: a base to build on.
  bool base_alone = false;
  /// For packages that the recipe names by their address.
  BuildDirect build_direct = nullptr;
  /// Told what is worth a look in what was found, a sentence each; may be null.
  std::function<void(const std::string&)> note = nullptr;
  /// Told each constraint of mlenv's own that the wheels are held to, `numpy<2`; may be null.
  std::function<void(const std::string&)> limit = nullptr;
};

/// `2.36`, of the C library among a base's packages. Throws `no-glibc`.
std::string glibc_version(const Lock& lock);

/// The full version of the interpreter of a lock on an image once its Debian packages are in: they
/// may replace the one that `python` is of.
std::string python_after(const Lock& lock);

/// Throws `lock-newer` (usage) for a lock that holds what this mlenv cannot write.
void require_known_revision(const Lock& lock);

using Resolution = std::variant<Lock, Conflict>;

/// Debian packages first (they bring the interpreter and glibc), then wheels for that interpreter.
/// A changed env, command or name resolves nothing. URLs found on the way are remembered in the
/// cache (`wheel_places`).
Resolution resolve(const Recipe& recipe, const ResolveOptions& options, Http& http,
                   Progress& progress);

/// Where each wheel lies: from the cache's memory, else asked of uv.
WheelPlaces wheel_places(const Recipe& recipe, const Lock& lock,
                         const std::vector<LockedWheel>& wheels, const fs::path& cache,
                         Progress& progress);
/// Where the index has the source release; empty: nowhere, or other bytes of that name.
std::string source_url(const Recipe& recipe, const Lock& lock, const LockedSource& source,
                       const fs::path& cache, Progress& progress);
/// As `wheel_places`, whatever is remembered.
WheelPlaces wheel_places_anew(const Recipe& recipe, const Lock& lock,
                              const std::vector<LockedWheel>& wheels, const fs::path& cache,
                              Progress& progress);

}  // namespace mlenv
