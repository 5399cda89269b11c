#pragma once
// What this machine's settings of uv and pip say of packages, as keys of a new recipe: no lock
// heeds the settings themselves.
#include <string>
#include <vector>

#include "recipes/resolve/machine_steering.hpp"

namespace mlenv {

/// The recipe's text with these at its end; those that no key says, or whose key it has already, as
/// comments. Files that variables name are read.
std::string with_machine_keys(std::string recipe, const std::vector<MachineWord>& words);

}  // namespace mlenv
