#pragma once
// `packages.sources` of a lock: what its wheels were built from.
#include <string>
#include <vector>

#include "recipes/lock.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

/// One row. Throws the reader's error for what contradicts itself, and for addresses that a recipe
/// could not hold either (logins).
LockedSource read_source(const TomlReader& reader, const TomlValue& table, std::string version);

/// `sources = […]`; empty where there are none.
std::string render_sources(const std::vector<LockedSource>& sources);

}  // namespace mlenv
