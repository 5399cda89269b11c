#pragma once
// Where a container's mounts go in folders of the person's.
#include <string>
#include <vector>

#include "runner/engine/engine_command.hpp"

namespace mlenv {

/// Makes, as the caller, what is absent of the targets that lie in other mounts: the engine's
/// runtime would make it as root. `memory`: targets of folders in memory. Links in a mount lead
/// where they lead in the container; what is not in a mount is left to the runtime, so that nothing
/// is made outside of the mounts' sources; where one has a throwaway layer, it is made in that.
/// Throws `bad-mount` (usage) for a target that is absent in a read-only mount.
void make_mount_points(const EngineContainer& container, const std::vector<std::string>& memory);

}  // namespace mlenv
