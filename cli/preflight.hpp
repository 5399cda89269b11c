#pragma once
// `mlenv preflight`: whether the nodes of a job reach each other, and how fast (docs/preflight.md).
#include "cli/ui.hpp"
#include "runner/job/preflight.hpp"

namespace mlenv::cli {

Action declare_preflight(CLI::App& app);

}  // namespace mlenv::cli
