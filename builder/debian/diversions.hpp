#pragma once
// dpkg's list of diverted files (dpkg-divert(1)).
#include <map>
#include <string>

#include "base/files.hpp"

namespace mlenv::debian {

struct Diversion {
  std::string target;
  std::string package;  ///< whose own file keeps the name; `:` for a local one
};
/// By the diverted path (absolute).
using Diversions = std::map<std::string, Diversion>;

/// Empty where `root` has none.
Diversions read_diversions(const fs::path& root);

}  // namespace mlenv::debian
