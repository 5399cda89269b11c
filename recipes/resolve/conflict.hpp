#pragma once
// Why no lock exists: a normal answer (exit 3), not an error.
#include <string>
#include <vector>

namespace mlenv {

struct Conflict {
  std::string headline;            ///< `no set of wheels satisfies the recipe`
  std::vector<std::string> facts;  ///< a short chain, outermost first
  std::string hint;
};

}  // namespace mlenv
