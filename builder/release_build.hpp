#pragma once
// A wheel made from a source, in the sandbox (build_workshop.hpp) with build requirements that are
// wheels and locked, so that the same source gives the same wheel elsewhere.
#include <string>
#include <vector>

#include "builder/build_workshop.hpp"
#include "builder/direct_source.hpp"

namespace mlenv {

class ReleaseBuilder {
 public:
  explicit ReleaseBuilder(BuildPlace place) : place_(std::move(place)) {}
  const BuildPlace& place() const { return place_; }

  /// Chooses the build requirements, builds, and puts the wheel into the store. A Conflict where
  /// the requirements cannot be had. Throws `build-failed` with what the build said, `bad-source`.
  std::variant<BuiltRelease, Conflict> build(const SourceRelease& release, const Lock& base);

  /// The same of what the recipe names by its address, as BuildDirect says: of a repository or
  /// server whose entry in `before` stands, nothing is asked while its wheel is at hand. Throws
  /// also what fetching it does, and a mistake at the recipe's place for what is not there or of
  /// another name.
  std::variant<BuiltRelease, Conflict> build_direct(const DirectRequirement& wanted,
                                                    const Lock& base, const Lock* before);

  /// The wheel that `lock` says was made of its `source`, where store or vendored copies have it;
  /// nothing is fetched or built.
  std::optional<BuiltRelease> find_built(const LockedSource& source, const Lock& lock);

  /// Throws `hash-mismatch` where the recipe's files promise another hash of the source.
  void require_promised(const DirectRequirement& wanted, const LockedSource& source) const;

  /// The wheel of a lock again, with what the lock says built it: in the store afterwards. Throws
  /// `wheel-differs` when it is not the locked one, `input-gone`, `foreign-platform`, and as
  /// `build`.
  void rebuild(const LockedWheel& wheel, const Lock& lock);

 private:
  fs::path fetch(const SourceRelease& release) const;
  fs::path fetch_locked(const LockedSource& source, const Lock& lock) const;
  std::optional<BuiltRelease> take_over(const LockedSource& source, const Lock& lock);
  std::variant<BuiltRelease, Conflict> take_wheel(const DirectRequirement& wanted,
                                                  LockedSource source, const fs::path& path,
                                                  const Lock& base);
  bool is_at_hand(const LockedWheel& wheel);
  DirectSource bring(const DirectRequirement& wanted, const LockedSource* kept, const Lock* before);
  DirectSource bring_again(const LockedSource& source) const;
  DirectSource file_again(const LockedSource& source, const Lock& lock);
  BuildPlace place_;
};

}  // namespace mlenv
