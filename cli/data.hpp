#pragma once
// A recipe's data sets on this machine.
#include <vector>

#include "cli/ui.hpp"
#include "recipes/recipe.hpp"
#include "runner/local/run.hpp"

namespace mlenv::cli {

/// Holds each data set that is here against its digest; one that is elsewhere is told of. What was
/// read once is not read again until names, sizes or times change. Throws the recipe's error, with
/// the digest to write, where it has none, and `data-differs` (exit 3).
void verify_data(Ui& ui, const Recipe& recipe);

/// Read-only, each at its place. Throws `no-data` for one that is not here.
std::vector<Mount> data_mounts(const Recipe& recipe);

}  // namespace mlenv::cli
