#pragma once
// The programs that nodes are given.
#include "base/files.hpp"

namespace mlenv::job {

/// mlenv-node, beside the running mlenv or in ../libexec/mlenv; the program itself where it is
/// mlenv-node. Throws `no-node-program` where there is none.
fs::path node_program();

/// mlenv-gpu-probe, in the same places. Throws `no-probe-program`.
fs::path probe_program();

}  // namespace mlenv::job
