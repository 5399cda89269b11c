#pragma once
// Which files of a folder are its code.
#include <set>
#include <string>
#include <vector>

#include "base/files.hpp"

namespace mlenv::job {

struct CodeFiles {
  std::set<std::string> paths;      ///< relative to the folder, clean; files and links
  std::set<std::string> kept_back;  ///< for names that secrets have
  std::string ignore_file;          ///< in which more can be left out, for messages
};

/// As snapshot_of() says. What vanishes meanwhile is not in it.
CodeFiles code_files(const fs::path& folder);
/// All of them.
CodeFiles all_files(const fs::path& folder);

}  // namespace mlenv::job
