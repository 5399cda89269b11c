#pragma once
// Text for people, a line each, without their ends.
#include <string>
#include <vector>

namespace mlenv::cli {

using Lines = std::vector<std::string>;

}  // namespace mlenv::cli
