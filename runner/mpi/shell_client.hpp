#pragma once
// The end of a remote shell from which commands are asked for.
#include "runner/mpi/frames.hpp"
#include "runner/mpi/hosts.hpp"
#include "runner/mpi/shell_words.hpp"

namespace mlenv::mpi {

/// Runs it there with this process's standard streams; SIGINT, SIGTERM, SIGHUP and the like are
/// passed on. Its status; 255, as of ssh, where the connection broke. Throws `no-node` where nobody
/// answers, `mpi-refused` where the secret is another one.
int run_there(const Host& host, const ShellWords& words, const std::string& secret);

/// Tells a node's server of a rank that failed. Throws the same.
void report_to(const Host& host, const RankFailure& failure, const std::string& secret);

}  // namespace mlenv::mpi
