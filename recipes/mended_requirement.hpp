#pragma once
// Requirements as packages had them before PEP 440 and 508 were asked of them: `opencv-python
// (>=3.)`, `numpy (>=1.8.*)`, `x (>=1<2)`.
#include <string>

namespace mlenv {

/// As it is where it can be read, or cannot be mended; else what its author meant.
std::string mended_requirement(const std::string& text);

}  // namespace mlenv
