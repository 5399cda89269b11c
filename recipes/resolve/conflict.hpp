#pragma once
// Why no lock exists: a normal answer (exit 3), not an error.
#include <string>
#include <vector>

namespace mlenv {

struct Conflict {
  std::string headline;  ///< `no set of wheels satisfies the recipe`
  std::vector<std::string>
      facts;  ///< a short chain, outermost first; lines of the recipe with carets
  std::string hint;
  std::string absent;  ///< the Python package that no index has (normalised); empty: another reason
  std::string told{};  ///< uv's whole account, of which `facts` are a part; empty: not uv's finding
};

}  // namespace mlenv
