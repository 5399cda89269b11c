#pragma once
// Which rank is what in a job with parameter servers, and how many read data.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/job/job.hpp"

namespace mlenv::job {

/// Containers of an MPI job, of which each holds several ranks.
inline constexpr std::string_view kMpiLauncher = "mpi-launcher";
inline constexpr std::string_view kMpiWorker = "mpi-worker";

struct RankRole {
  std::string_view role;    ///< `worker`, `chief`, `ps`, `evaluator`, or of MPI
  std::uint64_t index = 0;  ///< among those of its role, by rank
};

/// Of each rank. Without parameter servers all are workers, but for MPI, which has one container on
/// each node and the launcher on the first. With them rank 0 is the chief and the
/// last rank the evaluator, where there are such; servers are spread over the nodes, the last node
/// first, and take the last free rank there, so that no node's network carries all of them; the
/// others are workers. Throws `bad-job` (usage) where no worker is left.
std::vector<RankRole> roles_of(const Job& job, std::uint64_t nodes);

}  // namespace mlenv::job
