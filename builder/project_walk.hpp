#pragma once
// One line of `files:`, followed through the folders of a project.
#include <string>
#include <vector>

#include "builder/project_files.hpp"
#include "recipes/ignore.hpp"

namespace mlenv {

struct Found {
  const RecipeFile* recipe_file = nullptr;
  std::string target;              ///< absolute; of a file the whole path
  std::vector<ProjectFile> files;  ///< not hashed yet; in no order
  std::vector<std::string> secrets;
  std::uint64_t bytes() const;
};

/// Where the recipe's data sets really lie, whatever links and `..` their paths go through: nothing
/// there is ever copied.
std::vector<fs::path> data_places(const Recipe& recipe);

/// All that `file` copies, `real` being where it lies. `record` names the file in the recipe's
/// folder that a build itself writes: it is passed over, whatever the rules say.
Found walk_source(const Recipe& recipe, const RecipeFile& file, const fs::path& real,
                  const ProjectIgnores& ignores, const std::string& record);

/// What the rules say of a path of the project, by way of the folders that it is in.
IgnoreRules::Fate fate_of(const IgnoreRules& rules, const std::string& path);

/// Fills `content`, and the size as it was read. Throws `file-changed` when the file is no longer
/// what was found, or changes while it is read.
void hash_file(ProjectFile& file);

}  // namespace mlenv
