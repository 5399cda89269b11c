#pragma once
// A comparison as GitHub's markdown: for issues, papers and notes.
#include <string>
#include <vector>

#include "runner/compare/comparison.hpp"

namespace mlenv::compare {

std::vector<std::string> markdown(const Comparison& comparison);

}  // namespace mlenv::compare
