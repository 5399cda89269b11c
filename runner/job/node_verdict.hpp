#pragma once
// Whether an image runs on the nodes of a job, before anything is started there.
#include <string>
#include <vector>

#include "images/inspect/image_facts.hpp"
#include "runner/job/drive.hpp"

namespace mlenv::job {

/// Judges each node by its facts (check/verdict.hpp), and all of them together. Throws
/// `does-not-run` (no), which names the first finding that blocks, the node, and how many others
/// it blocks on. `with_gpus`: the ranks use the nodes' GPUs.
void require_verdicts(const ImageFacts& image, const std::string& name,
                      const std::vector<NodeState>& nodes, bool with_gpus);

}  // namespace mlenv::job
