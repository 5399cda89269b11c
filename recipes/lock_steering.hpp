#pragma once
// `request.steering` of a lock file (since revision 3).
#include <map>
#include <string>

#include "recipes/steering.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

/// The tables from `[request.steering]` on; nothing of one that is empty.
std::string render_steering(const Steering& steering);
/// As `locked_steering` has it.
Steering read_steering(const TomlReader& reader, const TomlValue& table);

/// What it says, a line each, by what it is of: `no-binary`, `build env of flash-attn`.
std::map<std::string, std::string> shown_steering(const Steering& steering);

}  // namespace mlenv
