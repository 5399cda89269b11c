#pragma once
// A base that is an image: brought into the store, and what of its files a lock stands on.
#include <optional>
#include <string>
#include <variant>

#include "base/http.hpp"
#include "base/progress.hpp"
#include "images/registry.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"
#include "recipes/resolve/base_system.hpp"
#include "recipes/resolve/conflict.hpp"

namespace mlenv {

struct BaseAccess {
  Store& store;
  Http& http;
  RegistryOptions registry;
  Progress& progress;
};

struct FoundBase {
  LockedBase base;
  std::string distribution;          ///< os-release(5) ID; empty: not told
  std::string suite;                 ///< its VERSION_CODENAME; empty: not told
  std::string python;                ///< full version; empty: the recipe needs none
  std::optional<BaseSystem> system;  ///< where the recipe asks for packages of it
  /// The answer unless those packages bring the Python that it has not got.
  std::optional<Conflict> lacks_python;
};

/// The recipe's base as it is now, or the image `pinned` of it, unpacked in the store. Interpreter,
/// its version and glibc are read from its files; nothing of it is run. The interpreter is the
/// `python3` of the image's own PATH, `python3.X` where the recipe names a version.
///
/// A Conflict: no Python, another version than the recipe's, no glibc where wheels are wanted, no
/// Debian or Ubuntu where `system` is.
/// Throws `base-gone` when `pinned` is not there any more, `bad-base` for an image that cannot be
/// one, and what fetching an image throws.
std::variant<FoundBase, Conflict> find_base(const Recipe& recipe, const std::string& platform,
                                            const std::optional<Digest>& pinned,
                                            const BaseAccess& access);

/// Brings config and layers of the lock's base into the store, from where the recipe says; does
/// nothing when they are there. Throws `base-gone`.
void provide_base(const Recipe& recipe, const Lock& lock, const BaseAccess& access);

/// Where the Debian packages of a lock on an image may be fetched; its base is unpacked for that.
std::vector<DebianSource> package_sources(const Recipe& recipe, const Lock& lock,
                                          const BaseAccess& access);

}  // namespace mlenv
