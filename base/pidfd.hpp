#pragma once
// Processes that are not a Child: their end as something to poll for, and how they ended.
#include "base/handle.hpp"
#include "base/process.hpp"

namespace mlenv {

/// Readable when the process has ended (pidfd_open(2)). Throws when it cannot be had.
Fd open_pidfd(pid_t pid);

/// Waits for a child of ours. Throws where it is none.
Exit reap(pid_t pid);

}  // namespace mlenv
