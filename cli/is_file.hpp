#pragma once
// Whether a word that a person gave names a file.
#include "base/files.hpp"

namespace mlenv::cli {

/// A regular one, or a link to one; false also where that cannot be seen.
inline bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace mlenv::cli
