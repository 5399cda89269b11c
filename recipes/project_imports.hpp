#pragma once
// What the sources of a project import of packages: read, and never run.
#include <string>
#include <vector>

#include "base/files.hpp"
#include "recipes/import_statements.hpp"

namespace mlenv {

struct ProjectImport {
  std::string file;  ///< relative to the project
  ImportStatement statement;
};

/// Of the `.py` files and notebooks in a folder and below it, other than tests, documentation,
/// build files and what is hidden or another environment's. Neither Python's own library nor what
/// the project has itself: a source of that name, or a folder with sources, wherever in it. Each
/// import once, by its first place; sorted by file, in notebooks with the cell's number as line.
/// Links are not followed. At most 2,000 files are read, each of 1 MiB, notebooks of 4.
std::vector<ProjectImport> project_imports(const fs::path& folder);

}  // namespace mlenv
