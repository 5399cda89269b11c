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
  std::string group;  ///< as its configuration has it
  fs::path bundle;    ///< holds config.json; the runtime's state and log go there too
  Identity identity = Identity::single_id;
  bool terminal = false;
  int stdout_fd = -1;  ///< of the job; -1: ours
  int stderr_fd = -1;
};

/// Runs the bundle with our standard streams: to its end with a terminal, else only until it has
/// started. A FirstReport has to go with it. With a terminal the job's output comes through the
/// runtime, whose own messages go to `messages_file`; without one the runtime shares the job's
/// standard error.
Command run_command(const Runtime& runtime, const Container& container);
fs::path messages_file(const Container& container);
/// Where the job's process id is once it has started.
fs::path pid_file(const Container& container);
/// The cgroups that the runtime made for it; nullopt when its state does not say.
std::optional<std::vector<fs::path>> cgroup_folders(const Runtime& runtime,
                                                    const Container& container);
/// Removes what is left of a container.
Command delete_command(const Runtime& runtime, const Container& container);

/// Files of one process that is put into a running container. In the container's bundle folder;
/// `console` is relative to it, for an address holds but 108 bytes.
struct ExecFiles {
  fs::path process;  ///< OCI's `process` of it, as JSON
  fs::path pid;
  fs::path log;
  fs::path console;  ///< a socket that gets the master of its terminal; empty: it has none
};
/// Starts it with the command's streams, and leaves. A FirstReport has to go with it.
Command exec_command(const Runtime& runtime, const Container& container, const ExecFiles& files);
/// The last error that a runtime wrote there; empty when there is none.
std::string runtime_message(const fs::path& log);

/// A runtime answers with the job's status, or with its own when the job did not start, and its log
/// tells which. 126 and 127 when the program could not be executed; throws `run-failed` or
/// `no-runtime` when it is the runtime that failed: with its last words, unless it has written them
/// to standard error itself.
Exit explain_exit(const Exit& exit, const Runtime& runtime, const Container& container);

}  // namespace mlenv
