#pragma once
// What of this process's variables OCI runtimes and engines get (docs/threat-model.md): those that
// they read, and no others. A secret of the caller's shell is none of their business, and some of
// the rest would change a container: LISTEN_FDS and NOTIFY_SOCKET are handed on into it.
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

enum class Starts { oci_runtime, engine };

/// `K=V`, as a Command takes them.
std::vector<std::string> runtime_variables(Starts what);

/// Whether it is one of those.
bool is_runtime_variable(Starts what, std::string_view name);

}  // namespace mlenv
