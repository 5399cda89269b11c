#pragma once
// InfiniBand and RoCE devices of a run.
#include "runner/local/options.hpp"
#include "runner/local/run.hpp"

namespace mlenv {

/// Whether this machine has any.
bool has_rdma(const fs::path& root = "/");

/// Adds the host's RDMA devices (`/dev/infiniband`: uverbs*, umad*, rdma_cm, below `root`), and
/// lets the job lock as much memory as this process may let it: transfers are between locked pages.
/// An own `--ulimit memlock` stays. Throws `no-rdma` where there are none.
void add_rdma(JobOptions& options, CdiEdits& edits, const fs::path& root = "/");

}  // namespace mlenv
