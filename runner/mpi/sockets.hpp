#pragma once
// TCP between the containers of a job.
#include <chrono>

#include "base/handle.hpp"
#include "runner/mpi/hosts.hpp"

namespace mlenv::mpi {

/// Listens at the host's own address alone; does not wait. Throws `port-taken` where another
/// program took the port meanwhile.
Fd listen_at(const Host& host);

/// nullopt of accept4(2): nobody is there.
Fd accept_from(const Fd& listener);

/// Waits for the other container to be up, but no longer than that. What is silent for seconds (a
/// dead node) breaks the connection. Throws `no-node`.
Fd connect_to(const Host& host, std::chrono::milliseconds patience);

}  // namespace mlenv::mpi
