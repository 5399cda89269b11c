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
/// started. With a terminal the job's output comes through the runtime, whose own messages go to
/// `messages_file`; without one the runtime shares the job's standard error.
Command run_command(const Runtime& runtime, const Container& container);
fs::path messages_file(const Container& container);
/// Where the job's process id is once it has started.
fs::path pid_file(const Container& container);
/// The cgroups that the runtime made for it; nullopt when its state does not say (crun).
std::optional<std::vector<fs::path>> cgroup_folders(const Container& container);
/// Removes what is left of a container.
Command delete_command(const Runtime& runtime, const Container& container);

/// A runtime answers with the job's status, or with its own when the job did not start, and its log
/// tells which. 126 and 127 when the program could not be executed; throws `run-failed` or
/// `no-runtime` when it is the runtime that failed: with its last words, unless it has written them
/// to standard error itself.
Exit explain_exit(const Exit& exit, const Runtime& runtime, const Container& container);

}  // namespace mlenv
