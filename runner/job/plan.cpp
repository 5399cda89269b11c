#include "runner/job/plan.hpp"

#include <map>

#include <fmt/core.h>

#include "base/error.hpp"
#include "runner/job/frameworks.hpp"
#include "runner/job/interfaces.hpp"
#include "runner/job/message_rules.hpp"
#include "runner/job/mpi.hpp"
#include "runner/job/roles.hpp"

namespace mlenv::job {
namespace {

void check_place(const Place& place) {
  if (place.interface.empty()) {
    throw usage_error("no-interface", "by which interface the others reach `{}` is not known",
                      place.name)
        .hint("name it: `--interface eth0`");
  }
  if (!is_loopback(place.interface, place.address)) return;
  throw usage_error("bad-job",
                    "the other nodes do not reach `{}` by its loopback (`{}`, {}): they would be "
                    "sent to themselves",
                    place.name, place.interface, place.address)
      .hint("name the interface that leads to the other nodes: `--interface eth0`");
}

void check_places(const std::vector<Place>& places) {
  if (places.empty()) throw Error{Kind::internal, "bug", "a plan for no node"};
  if (places.size() == 1) return;
  std::map<std::string, std::string> seen;
  for (const Place& place : places) {
    check_place(place);
    const auto [first, fresh] = seen.emplace(place.address, place.name);
    if (fresh) continue;
    throw usage_error("bad-job", "the nodes `{}` and `{}` have the same address, {}", first->second,
                      place.name, place.address)
        .hint("name each node once; several ranks on one: `--ranks-per-node`");
  }
}

/// Who reads data: workers, each its own part of it.
void tell_shard(const Start& start, const Rank& rank, Variables& env) {
  if (rank.role != "worker") return;
  env["MLENV_SHARD"] = std::to_string(rank.role_index);
  env["MLENV_SHARDS"] = std::to_string(start.with_role("worker"));
}

void tell_all(const Start& start, const Rank& rank, Variables& env) {
  const Place& first = start.places.front();
  const Place& place = start.place_of(rank);
  const std::string node = std::to_string(rank.node);
  env["RANK"] = std::to_string(rank.rank);
  env["WORLD_SIZE"] = std::to_string(start.ranks.size());
  env["LOCAL_RANK"] = std::to_string(rank.local_rank);
  env["LOCAL_WORLD_SIZE"] = std::to_string(start.job.ranks_per_node);
  env["NODE_RANK"] = node;
  env["GROUP_RANK"] = node;
  env["MASTER_ADDR"] = first.address;
  env["MASTER_PORT"] = std::to_string(rendezvous_port(first));
  env["MLENV_JOB"] = start.job_id;
  env["MLENV_NODE"] = node;
  env["MLENV_NODES"] = std::to_string(start.places.size());
  env["MLENV_NODE_NAME"] = place.name;
  env["MLENV_ROLE"] = rank.role;
  env["MLENV_RESTARTS"] = std::to_string(start.attempt);
  if (start.job.checkpoints) env["MLENV_CHECKPOINTS"] = start.job.checkpoints->target;
  tell_shard(start, rank, env);
  if (place.interface.empty()) return;
  env["GLOO_SOCKET_IFNAME"] = place.interface;
  env["NCCL_SOCKET_IFNAME"] = "=" + place.interface;  // without `=`: all that begin so
}

void tell_framework(const Start& start, const Rank& rank, Variables& env) {
  const Strategy strategy = start.job.strategy;
  if (strategy == Strategy::plain) return;
  if (strategy == Strategy::mpi) return tell_mpi(start, rank, env);
  const Framework framework = start.job.framework;
  if (framework == Framework::torch) tell_torch(start, rank, env);
  if (framework == Framework::jax) tell_jax(start, rank, env);
  if (framework == Framework::tensorflow || strategy == Strategy::parameter_server) {
    tell_tensorflow(start, rank, env);
  }
}

std::vector<Rank> ranks_of(const Job& job, std::uint64_t nodes) {
  const std::vector<RankRole> roles = roles_of(job, nodes);
  const std::uint64_t per_node = roles.size() / nodes;
  std::vector<Rank> ranks;
  ranks.reserve(roles.size());
  for (const RankRole& one : roles) {
    const std::uint64_t number = ranks.size();
    ranks.push_back(
        {number, number / per_node, number % per_node, std::string(one.role), one.index, {}});
  }
  return ranks;
}

}  // namespace

JobPlan plan(const Job& job, const std::vector<Place>& places, const std::string& job_id,
             std::uint64_t attempt) {
  check_places(places);
  const std::vector<Rank> ranks = ranks_of(job, places.size());
  const Start start{job, places, job_id, attempt, ranks};
  JobPlan made{ranks};
  for (Rank& rank : made.ranks) {
    Variables env;
    tell_all(start, rank, env);
    tell_framework(start, rank, env);
    for (const auto& [name, value] : env) rank.env.push_back(fmt::format("{}={}", name, value));
  }
  return made;
}

std::string etc_hosts_of(const std::vector<Place>& places) {
  std::string text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
  for (const Place& place : places) {
    text += fmt::format("{} {}", place.address, place.name);
    // As the node calls itself: no more than a name may come of that.
    if (is_host_name(place.host) && place.host != place.name) text += " " + place.host;
    text += '\n';
  }
  return text;
}

}  // namespace mlenv::job
