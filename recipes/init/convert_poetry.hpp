#pragma once
// `[tool.poetry]` and `[tool.uv]` of a pyproject.toml (Poetry's documentation, "The pyproject.toml
// file"; uv's, "Settings").
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/converters.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

/// Told where the project itself is no package (Conversion::only_without_project).
inline constexpr std::string_view kProgramsOfProject =
    "programs of the project, which itself is not installed";

/// Whether an extra or group is among those that are asked for, by normalised names.
bool is_chosen(const std::vector<std::string>& chosen, std::string_view name);

/// `standard`: packages (normalised) that `[project]` names, of which this table only says where
/// they are.
void convert_poetry(const ConversionSource& source, const TomlValue& poetry,
                    const ProjectChoice& choice, const std::set<std::string>& standard,
                    Conversion& to);

/// `[tool.uv]` but its `sources`, after the packages that the project asks for.
void convert_uv_settings(const ConversionSource& source, const TomlValue& uv, Conversion& to);

/// Poetry's and uv's words for a repository, path or URL; empty: an index has it.
std::string address_in_toml(const ConversionSource& source, const TomlValue& value,
                            const Conversion& to);

}  // namespace mlenv
