#pragma once
// What mlenv-node is within the containers of an MPI job (docs/jobs.md, "MPI").
#include <optional>

namespace mlenv::mpi {

/// `mlenv-node mpi wait` (a node's server), `mlenv-node mpi launch -- COMMAND…` (the same, and the
/// job's command, which mpirun starts where it does not start its ranks itself), `mlenv-node mpi
/// rank -- COMMAND…` (one rank, as mpirun starts it) and, where it is called `ssh`, the remote
/// shell between the nodes. nullopt: this is an ordinary start.
std::optional<int> mpi_main(int argc, char** argv);

}  // namespace mlenv::mpi
