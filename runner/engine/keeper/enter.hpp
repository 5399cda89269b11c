#pragma once
// The command's folder: named by an image, a person or a program, and entered with the rights of
// the command alone.
#include "runner/engine/keeper/protocol.hpp"

namespace mlenv::keeper {

/// Makes `folder` the working folder of this process; 0, or errno. No link of /proc that leads to
/// another process's files is followed (`RESOLVE_NO_MAGICLINKS`, openat2(2)), and a folder that is
/// not below the root is refused: EXDEV.
int enter_folder(const char* folder);

/// The first program of a container that an OCI runtime makes. It has no more rights than the
/// command, puts the filter of system calls on itself, goes into the folder, and becomes the
/// command. `words`: the filter's file (sock_filter), `kMake` or `kNeed`, the folder, the command
/// and its arguments. What goes wrong is told as `Failed` on kReportFd; what else was left open is
/// closed. Returns a status as shells have it.
///
/// Until the filter is on, others of the container, which has one already, must not reach into this
/// process (ptrace(2)). They cannot from the first moment on: the kernel lets nobody trace a
/// program that who starts it may not read (BINPRM_FLAGS_ENFORCE_NONDUMP). So the file has no mode
/// for reading, and the runtime starts it without CAP_DAC_OVERRIDE.
int be_first(int count, char** words);

}  // namespace mlenv::keeper
