#pragma once
// What of an older lock's wheels and sources still counts when it is replaced.
#include <vector>

#include "recipes/lock.hpp"
#include "recipes/resolve/direct.hpp"

namespace mlenv {

/// What `before` (may be null) says of a package by address that has the same address now; nullptr:
/// nothing.
const LockedSource* kept_source(const DirectRequirement& wanted, const Lock* before);

/// Whether a build there and one here have the same interpreter, libraries and time, and the recipe
/// gives them the same.
bool builds_alike(const Lock& before, const Lock& now);

/// The wheel of one of the lock's sources.
const LockedWheel& wheel_of(const LockedSource& source, const Lock& lock);
/// What built it; sorted by file.
std::vector<LockedWheel> tools_of(const LockedSource& source, const Lock& lock);

}  // namespace mlenv
