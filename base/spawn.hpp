#pragma once
// posix_spawn(3) of a Command, for those who own processes.
#include "base/process.hpp"

namespace mlenv {

/// What a new process is the first of.
enum class Leads { nothing, group, session };

/// Its streams, folder and variables as the command says, no signal blocked, and above the standard
/// streams no descriptor but `extra_fds` (base/descriptors.hpp). Returns when it runs
/// its program; it is the caller's to reap. Throws `cannot-start`. `own_group` does not matter.
pid_t spawn(const Command& command, Leads leads);

/// How a process ended, from its status as waitpid(2) gives it.
Exit decoded_exit(int status);

}  // namespace mlenv
