#pragma once
// What a recipe says of one package's build, out of what it says of all (recipes/steering.hpp).
#include <map>
#include <string>
#include <vector>

#include "recipes/steering.hpp"

namespace mlenv {

struct BuildSettings {
  std::vector<std::string> constraints;   ///< of everything that builds it
  std::vector<std::string> requirements;  ///< beside what it declares
  std::map<std::string, std::string> env;
  std::map<std::string, std::vector<std::string>> config_settings;
  bool network = false;
};

/// Of the package of that normalised name.
BuildSettings build_settings(const BuildSteering& steering, const std::string& name);

/// As PEP 517's hooks take them: `{"key": "value", "more": ["a", "b"]}`; `null` where there are
/// none.
std::string config_settings_json(const BuildSettings& settings);

}  // namespace mlenv
