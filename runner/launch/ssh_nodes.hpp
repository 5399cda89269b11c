#pragma once
// Engine *ssh*: machines that a person can reach by `ssh`, with nothing installed but sshd and an
// OCI runtime. Each start is two connections: one brings the program of nodes where it is absent
// (node_program.hpp), the other is the agent's.
#include "base/files.hpp"
#include "runner/launch/hosts.hpp"
#include "runner/launch/node_starter.hpp"

namespace mlenv::job {

struct SshSettings {
  std::vector<Host> hosts;
  fs::path program;  ///< mlenv-node, here
};

/// Throws `no-node` where there is no ssh or no program.
std::unique_ptr<NodeStarter> ssh_nodes(SshSettings settings);

}  // namespace mlenv::job
