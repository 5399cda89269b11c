#include "runner/job/frameworks.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "recipes/text.hpp"

namespace mlenv::job {
namespace {

// Of a node's ports, in the order in which they are given away.
constexpr std::size_t kRendezvous = 0;
constexpr std::size_t kCoordinator = 1;  // JAX
constexpr std::size_t kFirstTask = 1;    // TensorFlow: one for each rank of the node
constexpr std::size_t kShell = 1;        // MPI

bool has_tasks(const Job& job) {
  const bool collective = job.strategy == Strategy::allreduce;
  return job.strategy == Strategy::parameter_server ||
         (collective && job.framework == Framework::tensorflow);
}

bool has_coordinator(const Job& job) {
  return job.strategy != Strategy::plain && job.framework == Framework::jax;
}

/// Addresses of the tasks of each role, by index. An evaluator works beside the cluster and is no
/// part of it (tf.distribute, multi_worker_util).
nlohmann::json cluster_of(const Start& start) {
  const std::size_t first = kFirstTask + (has_coordinator(start.job) ? 1 : 0);
  nlohmann::json cluster = nlohmann::json::object();
  for (const Rank& rank : start.ranks) {
    if (rank.role == "evaluator") continue;
    const Place& place = start.place_of(rank);
    cluster[rank.role].push_back(
        host_and_port(place.address, place.ports.at(first + rank.local_rank)));
  }
  return cluster;
}

/// The GPUs that are this rank's among those that all ranks of its node see: as many for each, by
/// local rank; one of them for several ranks where there are fewer. Empty: none are known.
std::string own_gpus(const Start& start, const Rank& rank) {
  const std::uint64_t gpus = start.place_of(rank).gpus;
  const std::uint64_t ranks = start.job.ranks_per_node;
  if (gpus == 0) return {};
  if (gpus < ranks) return std::to_string(rank.local_rank % gpus);
  const std::uint64_t share = gpus / ranks;
  std::vector<std::string> own;
  for (std::uint64_t i = 0; i < share; ++i) {
    own.push_back(std::to_string(rank.local_rank * share + i));
  }
  return join(own, ",");
}

}  // namespace

std::uint64_t Start::with_role(const std::string& role) const {
  return static_cast<std::uint64_t>(std::count_if(
      ranks.begin(), ranks.end(), [&](const Rank& rank) { return rank.role == role; }));
}

std::string host_and_port(const std::string& address, std::uint16_t port) {
  const bool six = address.find(':') != std::string::npos;
  return six ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

std::uint16_t rendezvous_port(const Place& first) { return first.ports.at(kRendezvous); }

std::uint16_t shell_port(const Place& place) { return place.ports.at(kShell); }

std::size_t ports_needed(const Job& job) {
  if (job.strategy == Strategy::mpi) return kShell + 1;
  return 1 + (has_coordinator(job) ? 1 : 0) + (has_tasks(job) ? job.ranks_per_node : 0);
}

void tell_torch(const Start& start, const Rank& rank, Variables& env) {
  const std::string nodes = std::to_string(start.places.size());
  const std::string local_world = std::to_string(start.job.ranks_per_node);
  env["GROUP_WORLD_SIZE"] = nodes;
  env["ROLE_NAME"] = rank.role;
  env["ROLE_RANK"] = std::to_string(rank.role_index);
  env["ROLE_WORLD_SIZE"] = std::to_string(start.with_role(rank.role));
  env["TORCHELASTIC_RUN_ID"] = start.job_id;
  env["TORCHELASTIC_RESTART_COUNT"] = std::to_string(start.attempt);
  env["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(start.job.restarts);
  // `True` would have rank 0 wait for a store that only torchrun's agent opens.
  env["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  env["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "1";  // as torchrun has it
  env["CROSS_RANK"] = std::to_string(rank.node);
  env["CROSS_SIZE"] = nodes;
  env["LOCAL_SIZE"] = local_world;
  const std::string& interface = start.place_of(rank).interface;
  if (!interface.empty()) env["TP_SOCKET_IFNAME"] = interface;
}

// JAX takes the coordinator's address from its own variable, but how many processes there are and
// which this is only from a cluster that it knows (jax/_src/distributed.py, clusters/): the one
// that needs nothing but variables is Slurm's. The two names that other launchers have settled on
// are there for programs that pass them as arguments.
void tell_jax(const Start& start, const Rank& rank, Variables& env) {
  const Place& first = start.places.front();
  const std::uint16_t port = first.ports.at(kCoordinator);
  const std::string world = std::to_string(start.ranks.size());
  const std::string own = std::to_string(rank.rank);
  env["JAX_COORDINATOR_ADDRESS"] = host_and_port(first.address, port);
  env["JAX_COORDINATOR_PORT"] = std::to_string(port);
  env["JAX_NUM_PROCESSES"] = world;
  env["JAX_PROCESS_ID"] = own;
  env["SLURM_JOB_ID"] = "0";  // no job of Slurm's has it
  env["SLURM_STEP_NODELIST"] = first.address;
  env["SLURM_STEP_NUM_NODES"] = std::to_string(start.places.size());
  env["SLURM_NTASKS"] = world;
  env["SLURM_PROCID"] = own;
  env["SLURM_LOCALID"] = std::to_string(rank.local_rank);
  // Else JAX gives each process the one GPU whose number is its local rank.
  const std::string gpus = own_gpus(start, rank);
  if (!gpus.empty()) env["JAX_LOCAL_DEVICE_IDS"] = gpus;
}

void tell_tensorflow(const Start& start, const Rank& rank, Variables& env) {
  const nlohmann::json task = {{"type", rank.role}, {"index", rank.role_index}};
  env["TF_CONFIG"] = canonical({{"cluster", cluster_of(start)}, {"task", task}});
  // TensorFlow knows of no local rank: each process takes all GPUs that it sees.
  const std::string gpus = own_gpus(start, rank);
  if (start.job.ranks_per_node > 1 && !gpus.empty()) env["CUDA_VISIBLE_DEVICES"] = gpus;
}

}  // namespace mlenv::job
