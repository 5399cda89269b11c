#pragma once
// The OCI runtime programs: runc, or crun.
#include <string>

#include "base/process.hpp"
#include "runner/local/namespaces.hpp"

namespace mlenv {

struct Runtime {
  fs::path program;
  bool is_crun = false;
};

/// `wanted` (a name or path), or when it is empty runc, else crun. Throws `no-runtime`.
Runtime find_runtime(const std::string& wanted);

struct Container {
  std::string id;
  fs::path bundle;  ///< holds config.json; the runtime's state and log go there too
  Identity identity = Identity::single_id;
  bool terminal = false;
};

/// Runs the bundle with our standard streams: to its end with a terminal, else only until it has
/// started.
Command run_command(const Runtime& runtime, const Container& container);
/// Where the job's process id is once it has started without a terminal.
fs::path pid_file(const Container& container);
/// The cgroups that the runtime made for it; nullopt when its state does not say (crun).
std::optional<std::vector<fs::path>> cgroup_folders(const Container& container);
/// Removes what is left of a container.
Command delete_command(const Runtime& runtime, const Container& container);

/// A runtime answers with the job's status, or with its own when the job did not start, and its log
/// tells which. 126 and 127 when the program could not be executed; throws `run-failed` or
/// `no-runtime` with the runtime's last words when it is the runtime that failed.
Exit explain_exit(const Exit& exit, const Runtime& runtime, const Container& container);

}  // namespace mlenv
