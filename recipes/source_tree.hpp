#pragma once
// A folder of source files, as far as it can matter for what is built from it: names, contents,
// links, and what may be executed; no times, owners or empty folders. A checkout and a copy of it
// are the same tree.
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "recipes/recipe.hpp"

namespace mlenv {

struct SourceFile {
  enum class Kind { plain, executable, link };
  std::string path;  ///< below the folder
  Kind kind = Kind::plain;
  std::string link;  ///< what a link leads to, as it is
  Digest content;    ///< of a link: of that text
};

struct SourceTree {
  fs::path folder;
  std::vector<SourceFile> files;  ///< sorted by path

  /// SHA-256 of a line a file: its content's digest in hex, a blank, the mode that git has for it
  /// (`100644`, `100755`, `120000`), a blank, the path, a NUL.
  Digest digest() const;
};

/// Where `mlenv vendor` puts copies, beside a recipe.
inline constexpr std::string_view kVendorFolder = "vendor";

/// All of a folder. Throws `bad-source` for sockets, pipes and devices.
SourceTree read_source_tree(const fs::path& folder);

/// Of the folder at `path` from the recipe's: less what the ignore rules say (those beside the
/// recipe for what is in its folder, else the folder's own), version control, the folders that
/// setuptools leaves (`*.egg-info`, `.eggs`, its own in `build`), the recipe, what mlenv writes
/// beside it: locks, records, files that are being written; and, wherever they are, the copies of
/// `mlenv vendor` (vendored.hpp). Throws `bad-source`, also for a folder of which nothing is left,
/// and `file-changed` when something vanishes meanwhile.
SourceTree read_project_tree(const Recipe& recipe, const std::string& path);

/// Copies it into `to`, which is made: files with modes 0644 and 0755, links as they are. Throws
/// `file-changed` when a file is no longer what was read.
void copy_source_tree(const SourceTree& tree, const fs::path& to);

}  // namespace mlenv
