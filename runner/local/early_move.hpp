#pragma once
// The wait for the first process that is put into a control group, taken while the run is prepared.
#include "runner/facts/probe.hpp"

namespace mlenv {

/// After a moment without any, the kernel lets the first move of a process between control groups
/// wait until every processor has passed through its scheduler (percpu_down_write() of
/// cgroup_threadgroup_rwsem in kernel/cgroup/cgroup.c, rcu_sync_enter() in kernel/rcu/sync.c):
/// about ten milliseconds, as long as all else that starting a container takes. Moves that follow
/// soon do not wait. So a process of its own, which nobody waits for, moves into the group that it
/// is in already; the runtime's move comes after it. For root: others' containers have no groups.
/// It never fails: without it the runtime waits.
void move_groups_early() noexcept;

/// The file by which a process is put into the group that we are in, of whichever hierarchy comes
/// first; empty where none is seen.
fs::path own_procs_file(const FactSources& from);

}  // namespace mlenv
