#pragma once
// `run` of a lock's settings.
#include <string>
#include <vector>

#include "recipes/recipe.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

/// Nothing for no steps; ends in a newline.
std::string render_run_steps(const std::vector<RunStep>& steps);
/// From the table of settings.
std::vector<RunStep> read_run_steps(const TomlReader& reader, const TomlValue& settings);

}  // namespace mlenv
