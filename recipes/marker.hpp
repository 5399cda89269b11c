#pragma once
// Environment markers (PEP 508, "Environment markers"): their form, and whether one holds.
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "recipes/requirement.hpp"

namespace mlenv {

/// What is wrong with `python_version >= '3.10' and …`; nullopt: nothing.
std::optional<RequirementMistake> marker_mistake(std::string_view marker);

/// What markers are told of an image: CPython on Linux, whose kernel nobody knows.
struct MarkerEnvironment {
  std::string python;   ///< full version, `3.11.2`
  std::string machine;  ///< `x86_64`, `aarch64`

  /// `3.11`
  std::string python_minor() const;
};

/// Whether a marker without mistakes holds, as uv has it; an empty one does. `extras` are those
/// that are asked of the package whose requirement it is; of groups there is none. What is no
/// version is compared as text.
bool marker_holds(std::string_view marker, const MarkerEnvironment& environment,
                  const std::set<std::string>& extras = {});

/// On which images one without mistakes holds.
enum class MarkerReach { all, none, some };
/// Of all Pythons and machines that an image may have.
MarkerReach marker_reach(std::string_view marker, const std::set<std::string>& extras = {});

}  // namespace mlenv
