#pragma once
// A rerun added to what an earlier one found.
#include <string>

#include "runner/compare/comparison.hpp"

namespace mlenv::compare {

/// Why the two cannot be put together: another image, command, host or limit; empty: they can.
std::string apart(const Comparison& earlier, const Comparison& now);

/// Sessions and samples of both, the rows and sides of either; of a side what is newest. Concluded.
Comparison merged(Comparison earlier, Comparison now);

}  // namespace mlenv::compare
