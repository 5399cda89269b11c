#pragma once
// What each framework reads of its environment, beyond the variables that all ranks have
// (docs/jobs.md, "What ranks are told").
#include <map>
#include <string>
#include <vector>

#include "runner/job/plan.hpp"

namespace mlenv::job {

using Variables = std::map<std::string, std::string>;

/// What is known of a job that is about to start, for the variables of its ranks.
struct Start {
  const Job& job;
  const std::vector<Place>& places;
  const std::string& job_id;
  std::uint64_t attempt = 0;
  const std::vector<Rank>& ranks;  ///< without `env`

  const Place& place_of(const Rank& rank) const { return places[rank.node]; }
  std::uint64_t with_role(const std::string& role) const;
};

/// `10.0.0.1:29500`, `[fd00::1]:29500`
std::string host_and_port(const std::string& address, std::uint16_t port);
/// Which of the ports of a rank's node a framework's own service has: those of ports_needed().
std::uint16_t rendezvous_port(const Place& first);
/// At which a node's container hears the others, of strategy `mpi`.
std::uint16_t shell_port(const Place& place);

/// For `env://` of torch.distributed, and under the names that torchrun gives its workers; also
/// those of DeepSpeed's launcher.
void tell_torch(const Start& start, const Rank& rank, Variables& env);
/// For jax.distributed.initialize() without arguments.
void tell_jax(const Start& start, const Rank& rank, Variables& env);
/// TF_CONFIG.
void tell_tensorflow(const Start& start, const Rank& rank, Variables& env);
}  // namespace mlenv::job
