#pragma once
// Requirements as packages had them before PEP 440 and 508 were asked of them: `opencv-python
// (>=3.)`, `numpy (>=1.8.*)`, `x (>=1<2)`.
#include <string>

namespace mlenv {

/// What its author meant; as it is where that is no requirement either.
std::string mended_requirement(const std::string& text);

}  // namespace mlenv
