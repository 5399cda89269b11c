#pragma once
// What an MPI job's container on this node has of mlenv (runner/mpi/hosts.hpp, kFolder).
#include <string_view>

#include "base/files.hpp"
#include "runner/local/run.hpp"

namespace mlenv::job {

/// Makes the folder (mlenv-node, `bin/ssh`, `hostfile`, `hostfile.hydra`), readable for whoever the
/// container's user is, and mounts it, and the hostfile also where DeepSpeed looks for one.
/// `hosts`: mpi::render_hosts. Throws `bad-stream` for other text, `no-node-program`.
void add_mpi_folder(LocalRun& run, const fs::path& folder, std::string_view hosts);

}  // namespace mlenv::job
