#pragma once
// How an engine brings agents to nodes: the only thing in which engines differ for a job's
// controller.
#include <memory>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "runner/job/node_link.hpp"

namespace mlenv::job {

/// A node that an engine offers.
struct NodeOffer {
  std::string name;         ///< as the person or the engine calls it
  std::string address;      ///< at which it is reached; empty: the node tells
  std::string interface;    ///< that has it, where the engine knows
  std::uint64_t slots = 0;  ///< most ranks, where the person or the engine says so; 0: not said
};

/// How far the program of an agent has come on its way to where it is absent.
struct ProgramSent {
  std::uint64_t sent = 0;
  std::uint64_t all = 0;
};

/// An agent that was started: its streams, and the process on this machine that holds them (ssh,
/// srun, the agent itself).
///
/// An owner that has other nodes to look after never waits for one: `let_go`, then `gone` now and
/// then until it is true, then `last_words`.
class StartedNode {
 public:
  /// Of one that was not let go: gives it the time that it may need. Of one that was: ends it at
  /// once, as a power cut would.
  virtual ~StartedNode() = default;
  virtual NodeStream take_stream() = 0;
  /// Whoever waits for the agent's first word is patient as long as this grows. What is sent need
  /// not have arrived.
  virtual ProgramSent program_sent() { return {}; }
  /// After the streams have closed: what ssh or srun said of it, for the message; empty: nothing.
  /// Waits a moment for the process's end, but not once it was let go.
  virtual std::string last_words() = 0;
  /// Its process has ended and is reaped. Waits for nothing. To be called now and then of one that
  /// is used, too: what it writes to standard error is thrown away but for the end.
  virtual bool gone() = 0;
  /// Asks it to end, once its streams are closed. Waits for nothing; what has not ended when it had
  /// all the time that it may need is killed by `gone`.
  virtual void let_go() = 0;
};

class NodeStarter {
 public:
  virtual ~NodeStarter() = default;
  virtual std::vector<NodeOffer> offers() const = 0;
  /// Starts an agent there; does not wait for it. Throws `no-node` with what ssh or srun said.
  virtual std::unique_ptr<StartedNode> start(const NodeOffer& node) = 0;
  /// A node that was lost may be asked again: false where the engine never gives it back.
  virtual bool may_come_back() const = 0;
};

}  // namespace mlenv::job
