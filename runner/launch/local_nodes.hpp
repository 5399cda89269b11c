#pragma once
// Engine *local*: this machine plays several nodes, for trying a job on a laptop. Each node has
// namespaces of its own of processes, mounts, network, host name and IPC; its network is a loopback
// and `eth0` with an address, on a bridge that lies in a namespace without a process. Nothing is
// added to the network of the machine, and none of these networks leads out of it. /etc/hosts of a
// node names all of them.
//
// As an ordinary user all of it lies in one user namespace, in which the caller has the id that it
// has: what an agent there does is allowed or refused as outside of it.
//
// An agent is this executable, run again as `__node STORE`; main() must call node_main()
// (runner/node/agent.hpp) and local_node_main().
#include <optional>

#include "base/files.hpp"
#include "runner/launch/node_starter.hpp"

namespace mlenv::job {

struct LocalSettings {
  std::size_t nodes = 1;
  fs::path store;  ///< of the nodes: the caller's own, so that no image has to travel
  /// What is started on a node, and its arguments; empty: `own_executable() __node STORE`.
  std::vector<std::string> agent;
};

/// Makes the network. Throws `no-node` where this machine cannot have one, and `no-namespace`.
std::unique_ptr<NodeStarter> local_nodes(const LocalSettings& settings);

/// The second half of a re-exec: main() calls this before any thread exists and returns its value
/// when it is engaged.
std::optional<int> local_node_main(int argc, char** argv);

}  // namespace mlenv::job
