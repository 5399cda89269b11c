#pragma once
// A comparison as lines for the terminal.
#include <string>
#include <vector>

#include "runner/compare/comparison.hpp"

namespace mlenv::cli {

/// A table where it fits into `width` columns (0: always), else a paragraph for each row.
std::vector<std::string> compare_text(const compare::Comparison& comparison, std::size_t width);

}  // namespace mlenv::cli
