#pragma once
// What `uv sync`, `poetry install` and their kin install: a project's dependencies, by its lock
// where it has one, and the project itself.
#include <optional>
#include <string>
#include <vector>

#include "recipes/init/converters.hpp"

namespace mlenv {

/// How the recipe names a file or folder of its own folder; nullopt: it lies elsewhere.
std::optional<std::string> name_from_recipe(const Conversion& to, const fs::path& path);

struct ProjectInstall {
  enum class Tool { uv, poetry, pdm, pipenv };
  Tool tool = Tool::uv;
  fs::path folder;                    ///< of the project, on this machine
  bool itself = true;                 ///< not `--no-root`, `--no-install-project`
  std::vector<std::string> extras{};  ///< `*` alone: all of them
  std::vector<std::string> groups{};  ///< beside those of the program itself
};

/// `text` is the command as written, for what cannot be taken over.
void install_project(const SourcePlace& place, const std::string& text,
                     const ProjectInstall& install, Conversion& to);

/// A file that `requirements` names as it is: pylock.toml.
void name_requirements(const ConversionSource& source, Conversion& to);

/// poetry.lock and pdm.lock: every package of the groups and extras, in its version.
void convert_pinned_lock(const ConversionSource& source, const ProjectChoice& choice,
                         Conversion& to);
/// Pipfile, and Pipfile.lock: of the latter the versions.
void convert_pipfile(const ConversionSource& source, Conversion& to);
void convert_pipfile_lock(const ConversionSource& source, Conversion& to);

}  // namespace mlenv
