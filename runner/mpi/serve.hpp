#pragma once
// A container of an MPI job, until its job is done.
#include <string>
#include <vector>

#include "runner/mpi/hosts.hpp"

namespace mlenv::mpi {

/// The status where a program is not there, as a shell has it.
inline constexpr int kNotFoundStatus = 127;

struct Membership {
  std::vector<Host> hosts;
  std::string secret;
  Host own;
};

/// Serves until it is told to end (SIGTERM) and no command runs any more; or, where a rank of this
/// node failed, until mpirun has heard of it: then the status is that rank's.
int wait_for_commands(const Membership& member);

/// Serves as long as the command runs; its status. Signals are passed on to it. Where its ranks are
/// mlenv's to start (`mpirun` is true) that is done by the image's mpirun; 127 where there is none.
int launch(const Membership& member, const std::vector<std::string>& command, bool mpirun);

}  // namespace mlenv::mpi
