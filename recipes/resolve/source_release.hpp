#pragma once
// Packages that come as source only, and those that come from no index. Whoever can run a program
// of the image builds them; the resolver asks.
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "recipes/lock.hpp"
#include "recipes/resolve/conflict.hpp"
#include "recipes/resolve/direct.hpp"

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

/// What a build took in the image's version, since the recipe says that it needs it: name →
/// version, empty where the image had none.
using Matched = std::map<std::string, std::string>;

struct BuiltRelease {
  LockedWheel wheel;
  LockedSource source;
  std::vector<LockedWheel> build_wheels;
  ReleaseMetadata metadata;
  fs::path path;  ///< of the wheel, under whatever name
  Matched matched{};
};

/// Builds a wheel of it for the interpreter of `base`, a lock that has Debian packages and Python;
/// its wheels are those that the image will have, where the build wants to know them, its sources
/// and `build_wheels` what an older lock was built with. Throws `build-failed`.
using BuildRelease =
    std::function<std::variant<BuiltRelease, Conflict>(const SourceRelease&, const Lock& base)>;

/// Whether the build of a package wants to know what the image will have.
bool wants_image(const Recipe& recipe, const std::string& name);
/// Whether the image has other versions than those: what was built with them is built again.
bool is_stale(const Matched& matched, const std::vector<LockedWheel>& image);

/// The wheel of what the recipe names by its address: it is one, or is built as above. What
/// `before` (may be null), an older lock, says of it stays where that still fits: a branch's
/// commit, and the wheel itself where nothing that it was built from is another one.
using BuildDirect = std::function<std::variant<BuiltRelease, Conflict>(
    const DirectRequirement&, const Lock& base, const Lock* before)>;

}  // namespace mlenv
