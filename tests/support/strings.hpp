#pragma once
#include <string>
#include <vector>

namespace mlenv {

using Strings = std::vector<std::string>;

}  // namespace mlenv
