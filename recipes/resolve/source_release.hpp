#pragma once
// Packages that come as source only. Whoever can run a program of the image builds them; the
// resolver asks.
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "recipes/lock.hpp"
#include "recipes/resolve/conflict.hpp"

namespace mlenv {

struct SourceRelease {
  std::string name;  ///< normalised
  std::string version;
  std::string file;
  std::string url;
  Digest digest;
  std::uint64_t size_bytes = 0;  ///< 0: the index does not tell
};

/// What uv wants to know of a release so that it need not build it (core metadata).
struct ReleaseMetadata {
  std::string name;
  std::string version;
  std::vector<std::string> requires_dist;
  std::string requires_python;
  std::vector<std::string> extras;
};

struct BuiltRelease {
  LockedWheel wheel;
  LockedSource source;
  std::vector<LockedWheel> build_wheels;
  ReleaseMetadata metadata;
};

/// Builds a wheel of it for the interpreter of `base`, a lock that has Debian packages and Python.
/// Throws `build-failed`.
using BuildRelease =
    std::function<std::variant<BuiltRelease, Conflict>(const SourceRelease&, const Lock& base)>;

}  // namespace mlenv
