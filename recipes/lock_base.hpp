#pragma once
// The part `base` of a lock file.
#include <string>

#include "recipes/lock.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

std::string render_base(const LockedBase& base, const std::string& folder = {});
/// Mistakes are also layers of unknown types, and an interpreter without a Python version or the
/// reverse; `lock.python` must be there.
LockedBase read_base(const TomlReader& reader, const TomlValue& table, const Lock& lock);

}  // namespace mlenv
