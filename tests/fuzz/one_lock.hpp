#pragma once
// What must hold for any bytes given as a lock or built file.
#include <stdexcept>
#include <string_view>

#include "base/error.hpp"
#include "recipes/built_set.hpp"
#include "recipes/lock_set.hpp"

namespace mlenv::fuzz {

inline bool refused_as_usage(const Error& error, std::string_view code) {
  return error.kind() == Kind::usage && (error.code() == code || error.code() == "lock-newer");
}

/// True when it was read as a lock. Throws std::logic_error when a promise is broken.
inline bool one_lock(std::string_view text) {
  bool read = false;
  try {
    const Lock lock = parse_lock(text, "recipe.lock");
    read = true;
    for (const LockedWheel& wheel : lock.wheels) {
      if (wheel.file.find('/') != std::string::npos) throw std::logic_error("a wheel with a path");
    }
    for (const LockedDeb& deb : lock.debs) {
      if (deb.path.starts_with('/') || deb.path.find("/../") != std::string::npos) {
        throw std::logic_error("a package path that leaves its place");
      }
    }
    const std::string rendered = render_lock(lock);
    const Lock again = parse_lock(rendered, "recipe.lock");
    if (again != lock || render_lock(again) != rendered || !lock_differences(lock, again).empty()) {
      throw std::logic_error("a lock changes when it is written and read");
    }
    const LockSet locks = parse_locks(text, "recipe.lock");
    if (parse_locks(render_locks(locks), "recipe.lock") != locks) {
      throw std::logic_error("locks of several platforms change when they are written and read");
    }
  } catch (const Error& error) {
    if (read || !refused_as_usage(error, "lock-invalid")) throw;
  }
  try {
    BuiltSet built = parse_builds(text, "recipe.built");
    built.newer = false;  // one that is not rewritten; what was understood of it is
    if (parse_builds(render_builds(built), "recipe.built") != built) {
      throw std::logic_error("a built file changes when it is written and read");
    }
  } catch (const Error& error) {
    if (!refused_as_usage(error, "built-invalid")) throw;
  }
  return read;
}

}  // namespace mlenv::fuzz
