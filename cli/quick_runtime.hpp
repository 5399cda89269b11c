#pragma once
// Which OCI runtime starts a container quickest here.
#include "runner/local/run.hpp"

namespace mlenv::cli {

/// Fills in `runtime` where the person named none. Versions of programs are remembered in the
/// cache.
void choose_runtime(LocalRun& run);

/// Where it is remembered what versions programs have.
fs::path versions_folder();

}  // namespace mlenv::cli
