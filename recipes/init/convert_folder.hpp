#pragma once
// A project's folder: the richest of the files in it that describe an environment.
#include <optional>
#include <string>
#include <vector>

#include "recipes/init/converters.hpp"

namespace mlenv {

/// Whether a README.md's first lines are those of a Hugging Face Space that Python runs.
bool is_space_readme(const std::string& text);

/// The same of one that a Dockerfile makes.
bool is_docker_space(const std::string& text);
/// What a Space's requirements.txt lists, beside its README.md.
void convert_space(const ConversionSource& readme, Conversion& to);

/// Of a folder, its `.binder` or `binder`, or its `.devcontainer`; nullopt: none describes one. A
/// folder of Binder's goes before what Binder would read without it.
std::optional<fs::path> richest_source(const fs::path& folder);

/// What stands beside that file and belongs to it: Debian's packages in `packages.txt` (Spaces) and
/// `apt.txt` (Binder), Python's version in `runtime.txt` and `.python-version`, what a Space's
/// README.md says, Binder's `postBuild`. An environment that the project or its folder of Binder's
/// describes beside that one is told.
void convert_beside(const fs::path& source, Conversion& to);

/// A virtual environment, or one of conda's.
bool is_environment_folder(const fs::path& folder);
/// `shown` is its name in what is told.
void convert_environment_folder(const fs::path& folder, const std::string& shown, Conversion& to);

/// Where a Python has its packages, below a root.
struct PythonPrefix {
  fs::path prefix;           ///< relative to the root: `opt/venv`, `usr/local`
  std::size_t packages = 0;  ///< recorded there
};
/// All below `root`, in the order of their names; Debian's own `usr/lib/python3` is none.
std::vector<PythonPrefix> python_prefixes(const fs::path& root);

}  // namespace mlenv
