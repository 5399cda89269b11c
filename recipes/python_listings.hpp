#pragma once
// Folders whose files a Python file reads without naming them: `glob("requirements/*.txt")`,
// `os.listdir("requirements")`, `Path("requirements").iterdir()`.
#include <set>
#include <string>
#include <vector>

#include "recipes/python_values.hpp"

namespace mlenv {

struct PythonListing {
  std::string
      pattern;  ///< `requirements/*.txt`: a folder, from the file's own, and a name with `*`
  /// The lines of the statement at the left margin that it stands in.
  int first_line = 0;
  int last_line = 0;
  /// Names that this statement gives something or adds to, the function that it defines, the
  /// keyword of a call that it is a value of.
  std::set<std::string> fed;
};

/// Those of one folder each, of the file's own. One whose folder is not in plain words, or that
/// looks into folders below, is none.
std::vector<PythonListing> python_listings(PythonTokens tokens, PythonValues& values);

}  // namespace mlenv
