#pragma once
// Wheels made from source for a platform whose programs do not run here. What is built on this
// machine serves it where it is for every machine (`…-any.whl`); else the wheel of an older lock
// does, where that still stands and lies in the store or among vendored copies.
#include <functional>
#include <string>
#include <variant>

#include "builder/release_build.hpp"

namespace mlenv {

class ForeignBuilder {
 public:
  /// A lock of this machine's platform of the same recipe, with Debian packages and Python: the one
  /// that is being written, with its wheels, or another. Asked for when something is to be built.
  using BaseHere = std::function<std::variant<const Lock*, Conflict>()>;

  /// `before`: the platform's older lock, may be null.
  ForeignBuilder(ReleaseBuilder& builder, BaseHere here, const Lock* before)
      : builder_(builder), here_(std::move(here)), before_(before) {}

  /// As ReleaseBuilder's, for `base` of the other platform. A wheel that is tied to this machine is
  /// a Conflict.
  std::variant<BuiltRelease, Conflict> build(const SourceRelease& release, const Lock& base);
  /// `before` may be null, also where there is an older lock: the package is to move.
  std::variant<BuiltRelease, Conflict> build_direct(const DirectRequirement& wanted,
                                                    const Lock& base, const Lock* before);

 private:
  std::variant<BuiltRelease, Conflict> carried_over(BuiltRelease built, const Lock& here,
                                                    const Lock& base) const;
  std::variant<std::vector<LockedWheel>, Conflict> tools_for(const std::vector<LockedWheel>& tools,
                                                             const std::string& shown,
                                                             const Lock& base) const;

  ReleaseBuilder& builder_;
  BaseHere here_;
  const Lock* before_;
};

}  // namespace mlenv
