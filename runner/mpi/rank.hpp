#pragma once
// One rank of MPI, as mpirun starts it.
#include <optional>
#include <string>
#include <vector>

#include "runner/mpi/launch_words.hpp"
#include "runner/mpi/serve.hpp"

namespace mlenv::mpi {

/// What programs that know nothing of MPI read of a rank's place: RANK, WORLD_SIZE, LOCAL_RANK,
/// LOCAL_WORLD_SIZE, NODE_RANK, MLENV_SHARD and the like, `K=V`.
std::vector<std::string> rank_variables(const RankPlace& place, std::size_t node, const Host& own);

/// Runs it with those variables; its status. Where it failed by itself (mpirun did not end it) the
/// node's server hears of it.
int run_rank(const Membership& member, const std::vector<std::string>& command);

}  // namespace mlenv::mpi
