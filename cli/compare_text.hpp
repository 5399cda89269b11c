#pragma once
// A comparison as lines for the terminal.
#include <string>
#include <vector>

#include "runner/compare/comparison.hpp"

namespace mlenv::cli {

std::vector<std::string> compare_text(const compare::Comparison& comparison);

}  // namespace mlenv::cli
