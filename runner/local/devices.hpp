#pragma once
// What CDI's edits do to a container (the CDI specification, "OCI Edits").
#include "runner/cdi/spec.hpp"
#include "runner/local/bundle.hpp"

namespace mlenv {

/// Adds device files, mounts, hooks and groups; variables are job_environment's. As real root
/// devices are made anew, as the edits describe them; otherwise, where nobody may make one, the
/// host's own are mounted, with the host's rights, and groups stay the caller's. Throws `stale-cdi`
/// for a device that is none, or that can only be made.
void add_devices(const CdiEdits& edits, Bundle& bundle);

}  // namespace mlenv
