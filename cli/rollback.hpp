#pragma once
// What a name meant before.
#include <string>

#include "cli/ui.hpp"

namespace mlenv::cli {

/// `mlenv images --history NAME`.
int show_history(Ui& ui, const std::string& text);
Action declare_rollback(CLI::App& app);

}  // namespace mlenv::cli
