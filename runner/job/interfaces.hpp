#pragma once
// By which of its interfaces the other nodes reach a node.
#include <string>
#include <string_view>

#include "runner/job/node_link.hpp"
#include "runner/job/plan.hpp"

namespace mlenv::job {

bool is_loopback(std::string_view interface, std::string_view address);

/// What the engine knows of a node before it was asked.
struct Reach {
  std::string name;       ///< as the engine calls it
  std::string address;    ///< empty: not known
  std::string interface;  ///< empty: not known
};

/// The node's place in a job of so many nodes, its ports as it told them. The interface is the one
/// that the job names (exactly: `eth0` is not `eth01`); else the engine's; else the one that has
/// the engine's address; else the only one that is neither a loopback nor a bridge of containers
/// on this host. A job of one node may use the loopback. IPv4 is preferred, and addresses that
/// hold for a link alone (fe80::/10) are not used.
/// Throws `no-interface` (usage), which names those that the node has; a loopback that the job
/// names is plan()'s `bad-job`.
Place place_of(const Job& job, std::size_t nodes, const Reach& reach, const NodeHello& node);

}  // namespace mlenv::job
