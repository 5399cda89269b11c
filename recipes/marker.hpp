#pragma once
// Environment markers (PEP 508) as far as their form goes; what they mean is left to uv.
#include <optional>
#include <string_view>

#include "recipes/requirement.hpp"

namespace mlenv {

/// What is wrong with `python_version >= '3.10' and …`; nullopt: nothing.
std::optional<RequirementMistake> marker_mistake(std::string_view marker);

}  // namespace mlenv
