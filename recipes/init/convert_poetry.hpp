#pragma once
// `[tool.poetry]` of a pyproject.toml (Poetry's documentation, "The pyproject.toml file").
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/converters.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

/// Whether an extra or group is among those that are asked for, by normalised names.
bool is_chosen(const std::vector<std::string>& chosen, std::string_view name);

/// `standard`: packages (normalised) that `[project]` names, of which this table only says where
/// they are.
void convert_poetry(const ConversionSource& source, const TomlValue& poetry,
                    const ProjectChoice& choice, const std::set<std::string>& standard,
                    Conversion& to);

/// Poetry's and uv's words for a repository, path or URL; empty: an index has it.
std::string address_in_toml(const ConversionSource& source, const TomlValue& value,
                            const Conversion& to);

}  // namespace mlenv
