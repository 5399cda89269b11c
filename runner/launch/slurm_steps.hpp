#pragma once
// Engine *slurm*, within an allocation: an agent on each node, as a step of one task. A node that
// was lost is not given back: Slurm ends the job with it, or puts the whole job back into the
// queue.
#include "base/files.hpp"
#include "runner/launch/node_starter.hpp"

namespace mlenv::job {

struct SlurmSteps {
  std::string nodes;  ///< SLURM_JOB_NODELIST
  fs::path program;   ///< mlenv-node, here: it is brought to where it is absent (node_program.hpp)
};

/// Throws `no-node` where there is no srun, no list of nodes, or no program.
std::unique_ptr<NodeStarter> slurm_steps(const SlurmSteps& settings);

/// srun's words before the command, for one node.
std::vector<std::string> srun_words(const std::string& program, const std::string& node);

}  // namespace mlenv::job
