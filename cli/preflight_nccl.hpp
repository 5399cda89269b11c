#pragma once
// NCCL's all-reduce over the GPUs of the nodes of a preflight.
#include "cli/ui.hpp"
#include "runner/job/drive.hpp"

namespace mlenv::cli {

/// Runs mlenv-gpu-probe on each node, in the image of `links` (the plan of the preflight before
/// it, whose `rdma` holds here, too), and adds what came of it to `found`. Throws
/// `no-probe-program`, and what `drive` does.
void measure_nccl(Ui& ui, job::NodeStarter& starter, const job::DrivePlan& links,
                  job::Preflight& found);

}  // namespace mlenv::cli
