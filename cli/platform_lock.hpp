#pragma once
// One platform's lock: what the resolver is handed for it.
#include <optional>

#include "cli/recipe_lock.hpp"
#include "recipes/resolve/resolve.hpp"

namespace mlenv::cli {

/// What is known when a platform is locked.
struct PlatformsSoFar {
  const LockSet& made;                   ///< of this run, whole
  const Lock* previous = nullptr;        ///< of the platform, from the lock that is replaced
  const Lock* other_previous = nullptr;  ///< of another platform, from there
};

class PlatformLocking {
 public:
  PlatformLocking(Ui& ui, const Recipe& recipe, const LockChoice& choice, ResolveOptions options)
      : ui_(ui), recipe_(recipe), choice_(choice), options_(std::move(options)) {}

  /// `options` of the constructor: `moved` and `epoch`. A Conflict is thrown as a refusal.
  Lock lock(const std::string& platform, const PlatformsSoFar& so_far);

 private:
  using Built = std::variant<BuiltRelease, Conflict>;

  bool is_named() const { return !recipe_.platforms.empty(); }
  bool moves(const std::string& name) const;
  ResolveOptions options_for(const std::string& platform, const PlatformsSoFar& so_far);
  Built build(const SourceRelease& release, const Lock& base, const PlatformsSoFar& so_far);
  Built build_direct(const DirectRequirement& wanted, const Lock& base, const Lock* before,
                     const PlatformsSoFar& so_far);
  std::variant<const Lock*, Conflict> base_here(const PlatformsSoFar& so_far);

  Ui& ui_;
  const Recipe& recipe_;
  const LockChoice& choice_;
  ResolveOptions options_;
  std::optional<Lock> stand_in_;  ///< a base of this machine's platform
};

}  // namespace mlenv::cli
