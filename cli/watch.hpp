#pragma once
#include "cli/ui.hpp"

namespace mlenv::cli {

Action declare_watch(CLI::App& app);

}  // namespace mlenv::cli
