#pragma once
// At which address and interface the ranks of a node meet the others.
#include "runner/job/drive.hpp"

namespace mlenv::job {

/// In this order: the interface that the job names; the one that has the address by which the node
/// is reached; the only one that is up and is no loopback; with `alone` (one node takes part) the
/// loopback. Ports are those of the hello. Throws `no-interface` (usage), with the interfaces that
/// the node has, where none can be told.
Place place_of(const NodeState& node, const Job& job, bool alone);

}  // namespace mlenv::job
