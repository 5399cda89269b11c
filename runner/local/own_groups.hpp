#pragma once
// The control groups that a container is made in. Limits set on us (by Slurm, by systemd) have to
// hold for it, so its group goes below ours. runc takes it from there by itself; crun begins at the
// first group of each hierarchy, and refuses machines on which version 1 and version 2 are both
// mounted, though it would use but version 1 there.
#include "runner/facts/probe.hpp"
#include "runner/local/limit_place.hpp"

namespace mlenv {

/// A hierarchy of version 1 that our own group is not the first of.
struct OwnGroup {
  fs::path point;   ///< where the hierarchy is mounted
  fs::path folder;  ///< our group in it
  friend bool operator==(const OwnGroup&, const OwnGroup&) = default;
};
std::vector<OwnGroup> own_groups(const FactSources& from);

/// In a mount namespace of one's own, where groups are of version 1: version 2 beside it is
/// covered, and for root each hierarchy shows our group as its first, in a cgroup namespace that
/// says so too (cgroup_namespaces(7)). Where version 2 is alone nothing is done. Throws
/// `no-namespace`.
void show_own_groups(bool root);

/// Our group in each hierarchy, of both versions.
std::vector<fs::path> all_own_groups(const FactSources& from);

/// Where version 2 is alone: our group in it, from the first, with a slash at the end:
/// `/system.slice/slurmstepd.scope/job_7/`. Else empty.
std::string own_unified_path(const FactSources& from);

/// The runtime for one who names none: crun, which starts a container in a third of runc's time,
/// where it is known to do what runc does: release 1.8 or newer, for ordinary users, whose
/// containers need no group, and for root where groups are of version 1 and no limits are asked
/// for. Else empty: as `find_runtime` finds it.
std::string quick_runtime(const FactSources& from, bool root, const JobLimits& limits);

}  // namespace mlenv
