#pragma once
// A wheel made from a source release, in the sandbox: by the image's own interpreter on the image's
// base, with build requirements that are wheels and locked, without network, at fixed paths, times,
// locale and hash seed, so that the same source gives the same wheel elsewhere.
#include <string>
#include <vector>

#include "base/http.hpp"
#include "base/progress.hpp"
#include "builder/inputs.hpp"
#include "builder/source_archive.hpp"
#include "images/store.hpp"
#include "recipes/resolve/source_release.hpp"

namespace mlenv {

/// What it works with, all of which outlives it.
struct BuildPlace {
  const Recipe& recipe;  ///< its package sources
  Store& store;
  Http& http;
  fs::path cache;
  Progress& progress;
  unsigned jobs = 0;
  VendorFolders vendor{};
  std::vector<std::string> snapshots{};  ///< as InputSources has them
};

class ReleaseBuilder {
 public:
  explicit ReleaseBuilder(BuildPlace place) : place_(std::move(place)) {}

  /// Chooses the build requirements, builds, and puts the wheel into the store. A Conflict where
  /// the requirements cannot be had. Throws `build-failed` with what the build said, `bad-source`.
  std::variant<BuiltRelease, Conflict> build(const SourceRelease& release, const Lock& base);

  /// The wheel of a lock again, with what the lock says built it: in the store afterwards. Throws
  /// `wheel-differs` when it is not the locked one, `input-gone`, and as `build`.
  void rebuild(const LockedWheel& wheel, const Lock& lock);

 private:
  class Workshop;
  fs::path fetch(const SourceRelease& release) const;
  fs::path fetch_locked(const LockedSource& source, const Lock& lock) const;

  BuildPlace place_;
};

}  // namespace mlenv
