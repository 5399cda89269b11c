#pragma once
// The packages of a lock file.
#include "recipes/lock.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

/// Reads `packages` into `lock`, sorted; `lock.platform` must be there. Mistakes are also packages
/// for another platform, and wheels whose file names tell another name or version.
void read_packages(const TomlReader& reader, const TomlValue& table, Lock& lock);

}  // namespace mlenv
