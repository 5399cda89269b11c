#pragma once
// `mlenv copy`: an image to other machines.
#include "cli/ui.hpp"

namespace mlenv::cli {

Action declare_copy(CLI::App& app);

}  // namespace mlenv::cli
