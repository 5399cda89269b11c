#pragma once
// A job: one command on several nodes. Plain values, as options of `mlenv run` or a job.yaml say
// them (docs/jobs.md), recorded as they are (mlenv.job/1).
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/local/options.hpp"
#include "runner/local/run.hpp"

namespace mlenv::job {

/// How many nodes: `3`, or `2:4` for a job that goes on with fewer (elastic).
struct NodeCount {
  std::uint64_t least = 1;
  std::uint64_t most = 1;
  friend bool operator==(const NodeCount&, const NodeCount&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("least", self.least);
    visit("most", self.most);
  }
};

/// What the ranks are to one another.
enum class Strategy {
  plain,             ///< rank variables alone
  allreduce,         ///< equals, which sum their gradients
  parameter_server,  ///< chief, workers, parameter servers, evaluator (TF_CONFIG)
  mpi,               ///< a container on each node, in which MPI's own programs start the ranks
};

/// What a rank's program expects of its surroundings.
enum class Framework { none, torch, jax, tensorflow, mpi };

/// Of a job with parameter servers; what is not there is 0.
struct ServerRoles {
  bool chief = true;
  std::uint64_t servers = 1;
  bool evaluator = false;
  /// Workers go their own ways: one that fails is started again by itself (rank_policy.hpp).
  bool async = false;
  friend bool operator==(const ServerRoles&, const ServerRoles&) = default;
};

/// Processes on a node, at most: beyond that they are in each other's way, and their number is more
/// likely a slip.
inline constexpr std::uint64_t kMostRanks = 4096;

struct Job {
  std::string name;   ///< empty: none
  std::string image;  ///< as the person called it
  std::vector<std::string> argv;
  std::vector<std::string> env;  ///< `K=V`
  std::vector<Mount> mounts;     ///< sources are of the nodes
  std::string workdir;           ///< empty: the image's
  JobOptions options;            ///< of each rank
  NodeCount nodes;
  std::uint64_t ranks_per_node = 1;
  std::optional<std::uint64_t>
      gpus_per_node;  ///< nothing: all that a node has, where the image uses CUDA
  Strategy strategy = Strategy::plain;
  Framework framework = Framework::none;  ///< what the image has, unless the person says
  ServerRoles roles;
  std::string interface;       ///< exact name; empty: the one by which the nodes are reached
  std::string pull_from;       ///< a registry from which nodes fetch the image; empty: from here
  std::uint64_t restarts = 0;  ///< of the whole job, after a rank or a node failed
  /// From the start of its ranks until they may be ended for more nodes (elastic.hpp).
  std::chrono::milliseconds rescale_interval{30000};
  std::optional<std::chrono::milliseconds> deadline;  ///< of the whole job, restarts included
  std::chrono::milliseconds grace{10000};             ///< between SIGTERM and SIGKILL
  std::optional<Mount> checkpoints;                   ///< a folder that all nodes share
  bool preflight = false;  ///< the links between the nodes are measured before it starts
  /// After so long without any sign of life of any rank the job has failed; nothing: it is told.
  std::optional<std::chrono::milliseconds> stall_timeout;
};

}  // namespace mlenv::job
