#pragma once
// Under which conditions a poetry.lock has its packages, where it does not say so itself (Poetry's
// before 2.0: what asks for a package says it).
#include <map>
#include <string>

#include "recipes/toml.hpp"

namespace mlenv {

/// By normalised names, of packages that all others ask for under a condition: `python_version <
/// "3.9"`. What `pyproject` asks for itself is there always, unless it says a condition too.
std::map<std::string, std::string> markers_of_poetry_lock(const TomlValue& lock,
                                                          const TomlValue& pyproject);

}  // namespace mlenv
