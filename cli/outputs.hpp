#pragma once
// Images as files, asked for on the command line.
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "images/archive.hpp"

namespace mlenv::cli {

/// Parsed and checked, before anything is made for them. Where one is standard output, answers go
/// to stderr from then on; two of that kind are refused (`bad-output`).
std::vector<Output> chosen_outputs(Ui& ui, const std::vector<std::string>& texts);

}  // namespace mlenv::cli
