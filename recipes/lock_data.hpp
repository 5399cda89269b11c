#pragma once
// `data` of a lock's settings.
#include <string>
#include <vector>

#include "recipes/lock.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

/// Nothing for no data; ends in a newline.
std::string render_data(const std::vector<LockedData>& data);
/// From the table of settings.
std::vector<LockedData> read_data(const TomlReader& reader, const TomlValue& settings);

}  // namespace mlenv
