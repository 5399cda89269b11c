#pragma once
// What a build will make: an ordered list of steps, each with a key, known from the lock and the
// digests of the project's files. A key that the store has seen answers a step before any work is
// done.
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "builder/project_files.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// Part of every key: raised whenever the bytes of a layer change for the same inputs.
inline constexpr int kLayerFormat = 2;

struct Step {
  enum class Kind { base, system, sources, interpreter, environment, wheels, bytecode, files, run };
  Kind kind = Kind::base;
  std::string title;                ///< `debian:bookworm`, `torch 2.15.0`, `37 small wheels`
  Digest key;                       ///< of `run` none yet: that hangs on the layers below (run_key)
  std::vector<std::size_t> wheels;  ///< of wheels and bytecode: indexes into lock.wheels
};

struct Plan {
  std::vector<Step> steps;  ///< the bottom layer first
};

/// Wheels from kOwnLayerBytes on are a layer each, so that it can be shared between images; the
/// others share one. Where that gave more than kOwnLayers layers, the bound is doubled until not:
/// overlayfs, Docker and registries want well under 127.
inline constexpr std::uint64_t kOwnLayerBytes = std::uint64_t{4} << 20;
inline constexpr std::size_t kOwnLayers = 60;

/// The project's files, one step a part, lie on top of all others, and `run` steps on top of them.
/// Debian packages on top of a base that is an image are a step of their own, right above it.
Plan make_plan(const Lock& lock, const std::vector<FilesPart>& files = {});

/// `12 Debian packages`
std::string system_title(const Lock& lock);

/// Key of one wheel's bytecode, which a new plan with other wheels finds again.
Digest bytecode_key(const Lock& lock, const LockedWheel& wheel);

}  // namespace mlenv
