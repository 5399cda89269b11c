#pragma once
// `mlenv compare`.
#include "cli/ui.hpp"

namespace mlenv::cli {

Action declare_compare(CLI::App& app);

}  // namespace mlenv::cli
