#pragma once
// Environments described in other tools' files, as drafts of recipes.
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "recipes/init/draft.hpp"

namespace mlenv {

enum class SourceFormat {
  requirements,
  conda,
  dockerfile,
  cog,
  pyproject,
  setup,         ///< setup.py, setup.cfg
  pipfile,       ///< and Pipfile.lock
  project_lock,  ///< uv.lock, poetry.lock, pdm.lock; with the pyproject.toml beside it
  pylock,
  pixi,
  devcontainer,
  compose,  ///< YAML with `services`
  notebook,
  space,  ///< the README.md of a Hugging Face Space
  beside  ///< what convert_beside reads is all there is
};

/// `a Dockerfile`, `a conda environment`, …
std::string_view format_name(SourceFormat format);

/// By its name, as the tools themselves know it: `Dockerfile`, `*.dockerfile`, `Containerfile`,
/// `cog.yaml`, `pyproject.toml`, `setup.py`, `setup.cfg`, `Pipfile`, locks of uv, Poetry and PDM,
/// `pixi.toml`, `devcontainer.json`, `*.ipynb`, `README.md` (a Space's), other YAML (conda; Docker
/// Compose, by what stands in it),
/// `*.txt` and `*.in` (requirements). nullopt for others.
std::optional<SourceFormat> format_of(const fs::path& path);

/// Reads `path`, and the requirements files that it names. A folder is a virtual environment, or a
/// project, of whose files the richest is taken, with what belongs to it (convert_folder.hpp). What
/// a recipe cannot say goes to `left_out` with its place. `folder` is where the recipe will lie:
/// `files` are relative to it. Nothing is run or fetched. Throws `source-invalid` (usage), with
/// places, for a file that is malformed, `unknown-format` (usage) where `format_of` has no answer,
/// `absent`.
Draft convert(const fs::path& path, const fs::path& folder);

}  // namespace mlenv
