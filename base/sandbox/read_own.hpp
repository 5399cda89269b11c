#pragma once
// Reading one's own files whatever their modes say, without changing them.

namespace mlenv {

/// From here on this process, and threads that it starts, may read every file and list every folder
/// of its own user and group: it gets CAP_DAC_READ_SEARCH, and nothing else, in a user namespace
/// that has these two alone (user_namespaces(7)). True for root, who may anyway. False, and nothing
/// has changed, where there are no such namespaces or the process has threads already.
bool read_own_past_modes();

}  // namespace mlenv
