#pragma once
// What a Python source imports when it is imported itself, read without running it.
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// `import a.b` or `from a.b import c, d`.
struct ImportStatement {
  std::string module;              ///< `a.b`
  std::vector<std::string> names;  ///< `c`, `d`; empty: the module alone, or `*`
  int line = 0;
  friend bool operator==(const ImportStatement&, const ImportStatement&) = default;
};

/// Those at the beginning of a line: what a condition, a function or a `try` holds may never be
/// needed. Relative ones (`from . import x`) and text in strings of several lines are none.
std::vector<ImportStatement> import_statements(std::string_view source);

}  // namespace mlenv
