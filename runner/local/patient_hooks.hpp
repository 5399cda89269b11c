#pragma once
// Hooks for crun. Before 1.17 it takes a hook that ends without having read the container's state
// for a failed one (`writing to pipe: Broken pipe`), now and then: when the hook is the faster one.
// NVIDIA's are such. Runtimes must offer the state (runtime-spec config.md "POSIX-platform Hooks");
// nothing says that a hook must read it.
#include <vector>

#include "runner/cdi/spec.hpp"

namespace mlenv {

/// The same hook behind a shell that takes the whole state first, and becomes the hook then: it has
/// the same state, arguments (its own path as the first), variables, process and status. Those of
/// `startContainer` stay as they are: they are programs of the image, which may have no shell.
CdiHook patient_hook(const CdiHook& hook);

}  // namespace mlenv
