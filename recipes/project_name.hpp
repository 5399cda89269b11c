#pragma once
// Whose a source is, read without running anything of it.
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace mlenv {

/// As the folder's pyproject.toml (`[project]`, `[tool.poetry]`), setup.cfg or setup.py (where it
/// is a plain text there) has it; nullopt where none does. Throws `requirements-invalid` for a
/// pyproject.toml that is no TOML.
std::optional<std::string> project_name(const fs::path& folder);

/// The Pythons that it is for, as the folder's pyproject.toml (`[project]`), setup.cfg or setup.py
/// has them: `>=3.10`; nullopt where none says it in plain words.
std::optional<std::string> project_python(const fs::path& folder);

/// `six-1.17.0.tar.gz` → name and version, also of wheels; nullopt for other files.
struct NamedRelease {
  std::string name;
  std::string version;
};
std::optional<NamedRelease> parse_release_file(std::string_view file);

}  // namespace mlenv
