#pragma once
// The other end of a NodeLink: on a node, as a child of sshd, srun or mlenv. It takes images and
// code into the node's store, runs ranks (each with a supervisor and a record of its own), passes
// on what they write, and ends with its controller: when the streams close, or nobody has said
// anything for `LinkSettings::silence`, it kills its ranks, takes away what it made for the job,
// and ends. When the agent itself is killed its ranks end with it, as all of AttachedRun's.
#include <optional>

#include "base/files.hpp"
#include "runner/job/node_link.hpp"

namespace mlenv::job {

struct AgentSettings {
  fs::path store;  ///< the node's; made when absent; empty: default_node_store()
  LinkSettings link;
};

/// Until the controller says good-bye or is gone; the process's exit status.
int serve_as_node(NodeStream stream, const AgentSettings& settings);

/// Serves this process's standard streams, which are then others: what a child of it writes reaches
/// nobody.
int serve_standard_streams(const fs::path& store);

/// As of `mlenv` itself: MLENV_STORE, else XDG_DATA_HOME, else in the home folder of this user, by
/// HOME or by /etc/passwd (not by any name service, which a static program cannot ask). Throws
/// `bad-setting` (usage) where there is none.
fs::path default_node_store();

/// `mlenv __node [STORE]`, and what `mlenv-node agent [STORE]` does: serves its standard streams.
/// main() calls this before any thread exists and returns its value when it is engaged.
std::optional<int> node_main(int argc, char** argv);

}  // namespace mlenv::job
