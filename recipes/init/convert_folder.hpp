#pragma once
// A project's folder: the richest of the files in it that describe an environment.
#include <optional>

#include "recipes/init/converters.hpp"

namespace mlenv {

/// Whether a README.md's first lines are those of a Hugging Face Space that Python runs.
bool is_space_readme(const std::string& text);

/// Of a folder, its `.binder` or `binder`, or its `.devcontainer`; nullopt: none describes one.
std::optional<fs::path> richest_source(const fs::path& folder);

/// What stands beside that file and belongs to it: Debian's packages in `packages.txt` (Spaces) and
/// `apt.txt` (Binder), Python's version in `runtime.txt` and `.python-version`, what a Space's
/// README.md says, Binder's `postBuild`.
void convert_beside(const fs::path& source, Conversion& to);

/// A virtual environment, or one of conda's.
bool is_environment_folder(const fs::path& folder);
void convert_environment_folder(const fs::path& folder, Conversion& to);

}  // namespace mlenv
