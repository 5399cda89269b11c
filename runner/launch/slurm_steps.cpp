#include "runner/launch/slurm_steps.hpp"

#include "base/error.hpp"
#include "runner/launch/hostlist.hpp"
#include "runner/launch/node_program.hpp"
#include "runner/launch/started_child.hpp"

namespace mlenv::job {
namespace {

/// srun ends when the agent has, or Slurm has given its node up.
constexpr std::chrono::milliseconds kMostSrunLeaving{15000};

class SlurmNodes final : public NodeStarter {
 public:
  SlurmNodes(fs::path srun, const SlurmSteps& settings)
      : srun_(std::move(srun)),
        nodes_(expand_hostlist(settings.nodes)),
        program_(settings.program) {}

  std::vector<NodeOffer> offers() const override {
    std::vector<NodeOffer> offers;
    for (const std::string& node : nodes_) offers.push_back({node, "", ""});
    return offers;
  }

  std::unique_ptr<StartedNode> start(const NodeOffer& node) override {
    std::vector<std::string> words = srun_words(srun_.string(), node.name);
    words.insert(words.end(), {"/bin/sh", "-c"});
    NodeProgram::Carried carried = program_.carried_by(words, /*any_shell=*/false);
    return std::make_unique<StartedChild>(std::move(carried.command), kMostSrunLeaving,
                                          std::move(carried.program));
  }

  bool may_come_back() const override { return false; }

 private:
  fs::path srun_;
  std::vector<std::string> nodes_;
  NodeProgram program_;
};

}  // namespace

// Unbuffered: srun would else hold everything back until a line ends. The agent's standard output
// is a terminal then, one that changes no byte (slurmstepd switches its output processing off).
// Overlapping, not bound, and with all of the memory: the step is the node's whole share of the
// allocation, which ranks then divide.
std::vector<std::string> srun_words(const std::string& program, const std::string& node) {
  return {program,       "--unbuffered", "--nodes=1",       "--ntasks=1", "--nodelist=" + node,
          "--overlap",   "--mem=0",      "--cpu-bind=none", "--mpi=none", "--chdir=/",
          "--input=all", "--output=all", "--job-name=mlenv"};
}

std::unique_ptr<NodeStarter> slurm_steps(const SlurmSteps& settings) {
  const std::optional<fs::path> srun = find_program("srun");
  if (!srun) {
    throw failure("no-node", "there is no `srun` here to reach nodes by")
        .hint("where Slurm's programs are is set up by the site: `module load slurm`, perhaps");
  }
  if (settings.nodes.empty()) {
    throw failure("no-node", "this is no allocation of Slurm's: SLURM_JOB_NODELIST is not set");
  }
  return std::make_unique<SlurmNodes>(*srun, settings);
}

}  // namespace mlenv::job
