#pragma once
// Python's own library (the standard library's documentation, "Python Module Index").
#include <string_view>

namespace mlenv {

/// Whether a module's first part is of the library of one of Python 3.8 to 3.14: `os`, `xml`.
bool is_in_python_library(std::string_view module);

}  // namespace mlenv
