#pragma once
// What a recipe asks for and its lock does not hold.
#include <string>
#include <vector>

#include "recipes/lock.hpp"

namespace mlenv {

/// A sentence for each requirement of the recipe that no locked package meets. Only locks without a
/// checksum of their own are looked at: the others are what mlenv resolved, or were refused when
/// read. Requirements with a marker are passed over, since they may mean no package at all.
std::vector<std::string> lock_gaps(const Recipe& recipe, const Lock& lock);

}  // namespace mlenv
