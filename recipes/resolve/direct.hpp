#pragma once
// Packages that a recipe names by their address (package_address.hpp), which no index is asked for.
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "recipes/lock.hpp"
#include "recipes/marker.hpp"
#include "recipes/package_address.hpp"
#include "recipes/recipe.hpp"

namespace mlenv {

struct DirectRequirement {
  std::string name;  ///< normalised
  PackageAddress address;
  const Recipe* recipe = nullptr;
  const Placed* place = nullptr;       ///< in the recipe; or
  const ListedText* listed = nullptr;  ///< in a file that it names; or neither: in a lock

  /// The place, with what is said of it, a line and a caret.
  std::string shown(std::string_view message) const;
  /// A mistake there (usage).
  Error mistake(std::string_view message) const;
};

/// Sorted by name, no package twice; those alone whose markers hold.
struct DirectRequirements {
  std::vector<DirectRequirement> required;
  std::vector<DirectRequirement> constraints;  ///< they count for what is needed anyway
};
/// Throws a mistake where one package has two addresses. They point into the recipe.
DirectRequirements direct_requirements(const Recipe& recipe, const MarkerEnvironment& environment);

/// Whether the source is of that address, whatever is there now.
bool is_from(const LockedSource& source, const PackageAddress& address);

/// The file or folder that a path leads to. Throws a mistake when it is not there.
fs::path find_direct_path(const DirectRequirement& wanted);

/// Whether the file has these bytes.
bool is_file_of(const fs::path& path, const Digest& digest);

/// How the folders and files that a lock's wheels were built from are other ones now, a line each;
/// none where all are the same. Repositories and servers are not asked.
std::vector<std::string> source_changes(const Recipe& recipe, const Lock& lock);

}  // namespace mlenv
