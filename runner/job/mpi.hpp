#pragma once
// A job of strategy `mpi`: one container on each node, which MPI's own programs fill with ranks.
// The first one (`mpi-launcher`) runs the command, the others (`mpi-worker`) wait for what mpirun
// starts there (runner/mpi). Plain.
#include <string>
#include <vector>

#include "runner/job/frameworks.hpp"
#include "runner/job/node_link.hpp"
#include "runner/mpi/hosts.hpp"

namespace mlenv::job {

/// The nodes as containers are told of them.
std::vector<mpi::Host> mpi_hosts(const Job& job, const std::vector<Place>& places);

/// How an mpirun in the container reaches the other nodes, and over which interface ranks talk. The
/// numbers of a rank are not there, since the container is none: each rank is told its own.
void tell_mpi(const Start& start, const Rank& rank, Variables& env);

/// A new one, that its containers know each other by; empty for other strategies.
std::string mpi_secret(const Job& job);
/// What the container of a rank runs in place of the job's command, and the job's secret.
void start_mpi(const Job& job, const std::vector<Place>& places, const Rank& rank,
               const std::string& secret, RankStart& start);

/// The numbers that lines of ranks are told apart by: none where all come from mpirun.
std::size_t told_apart(const JobPlan& plan);
/// `rank 3 on n2`; `MPI on n2`, for its container.
std::string called(const Rank& rank, const std::string& node);

}  // namespace mlenv::job
