#pragma once
// Environments described in other tools' files, as drafts of recipes.
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "recipes/init/draft.hpp"

namespace mlenv {

enum class SourceFormat { requirements, conda, dockerfile, cog, pyproject };

/// `a Dockerfile`, `a conda environment`, …
std::string_view format_name(SourceFormat format);

/// By its name, as the tools themselves know it: `Dockerfile`, `*.dockerfile`, `Containerfile`,
/// `cog.yaml`, `pyproject.toml`, other YAML (conda), `*.txt` and `*.in` (requirements). nullopt for
/// others.
std::optional<SourceFormat> format_of(const fs::path& path);

/// Reads `path`, and the requirements files that it names. What a recipe cannot say goes to
/// `left_out` with its place. `folder` is where the recipe will lie: `files` are relative to it.
/// Nothing is run or fetched. Throws `source-invalid` (usage), with places, for a file that is
/// malformed, `unknown-format` (usage) where `format_of` has no answer, `absent`.
Draft convert(const fs::path& path, const fs::path& folder);

}  // namespace mlenv
