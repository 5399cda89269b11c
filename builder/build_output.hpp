#pragma once
// What is shown of what a build said: the end of it, where its reason stands, without what every
// build says.
#include <cstddef>
#include <string>
#include <string_view>

namespace mlenv {

/// At most about `most` bytes, from the start of a line; `…` stands where more was said before.
/// Calls of build tools and of Python's own library are left out of tracebacks: they are the same
/// in each, and push the compiler's and CMake's words out of sight.
std::string shown_output(std::string_view said, std::size_t most);

}  // namespace mlenv
