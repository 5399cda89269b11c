#pragma once
// Which rank runs where, and what its environment says of the others. Plain functions: the same
// job on the same nodes gives the same plan, on every engine.
#include <cstdint>
#include <string>
#include <vector>

#include "runner/job/job.hpp"

namespace mlenv::job {

/// A node that takes part, as it has told of itself.
struct Place {
  std::string name;       ///< its host name, as the engine calls it
  std::string address;    ///< IPv4 or IPv6, at which the other nodes reach it
  std::string interface;  ///< which has that address; empty: not known
  /// TCP ports that were free there a moment ago, as many as ports_needed() says.
  std::vector<std::uint16_t> ports;
  std::uint64_t gpus = 0;  ///< that each of its ranks sees: all that the job has there
  std::string host = {};   ///< what it calls itself, where that is another name
};

/// One process of the job.
struct Rank {
  std::uint64_t rank = 0;        ///< 0 … world - 1
  std::uint64_t node = 0;        ///< index in the places
  std::uint64_t local_rank = 0;  ///< on its node
  std::string role;              ///< `worker`, `chief`, `ps`, `evaluator`, or of MPI (roles.hpp)
  std::uint64_t role_index = 0;  ///< among those of its role
  std::vector<std::string> env;  ///< `K=V`, sorted by name; the job's own variables come over it
};

struct JobPlan {
  std::vector<Rank> ranks;  ///< by rank: all of node 0 first
};

/// Of each node.
std::size_t ports_needed(const Job& job);

/// `attempt`: 0 for the first start, then each restart. Which variables a rank gets, and who reads
/// them: docs/jobs.md, "What ranks are told". Whatever the framework these are RANK, WORLD_SIZE,
/// LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, GROUP_RANK, MASTER_ADDR, MASTER_PORT, and MLENV_JOB,
/// MLENV_NODE, MLENV_NODES, MLENV_NODE_NAME, MLENV_ROLE, MLENV_RESTARTS, MLENV_CHECKPOINTS,
/// MLENV_SHARD, MLENV_SHARDS; the interface as GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME (`=eth0`:
/// that name exactly). Strategies other than `plain` add what the framework reads.
/// Throws `bad-job` (usage) where the roles leave no rank to work, where two nodes have one
/// address, or where a node's interface is a loopback and there is more than one node;
/// `no-interface` where it is not known then.
JobPlan plan(const Job& job, const std::vector<Place>& places, const std::string& job_id,
             std::uint64_t attempt);

/// /etc/hosts of every rank: each node's names and address, and the loopback as `localhost` alone.
/// Frameworks that meet at a host's own name (JAX's gloo on processors) are sent to themselves by
/// the `127.0.1.1 NAME` that Debian writes, and fail where the name leads nowhere.
std::string etc_hosts_of(const std::vector<Place>& places);

}  // namespace mlenv::job
