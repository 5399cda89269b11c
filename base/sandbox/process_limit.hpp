#pragma once
// How many threads a sandboxed program and all that it starts may have at once, processes among
// them.
#include <sys/resource.h>

namespace mlenv::sandbox {

/// As RLIMIT_NPROC: the kernel counts those of this sandbox alone (Linux 5.14), and none where the
/// caller is root.
inline constexpr rlim_t kProgramProcesses = 8192;

/// By the largest id of our process namespace, which Linux 6.14 lets each have, root's too; before
/// that nothing changes. `proc`: its /proc, a mount that may be written to.
void limit_process_ids(int proc) noexcept;

}  // namespace mlenv::sandbox
