#pragma once
// `[tool.poetry]` of a pyproject.toml (Poetry's documentation, "The pyproject.toml file").
#include <set>
#include <string>

#include "recipes/init/converters.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

/// `standard`: packages (normalised) that `[project]` names, of which this table only says where
/// they are.
void convert_poetry(const ConversionSource& source, const TomlValue& poetry,
                    const ProjectChoice& choice, const std::set<std::string>& standard,
                    Conversion& to);

/// Poetry's and uv's words for a repository, path or URL; empty: an index has it.
std::string address_in_toml(const ConversionSource& source, const TomlValue& value,
                            const Conversion& to);

}  // namespace mlenv
