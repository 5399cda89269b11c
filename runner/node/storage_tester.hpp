#pragma once
// A node's part of the proof that storage is the same on all nodes (runner/job/storage_proof.hpp):
// what its controller asks is looked at by a process of its own, so that the agent goes on to be
// heard where a file system does not answer. What that process left in storage it takes away when
// it is told to, when it is no longer needed, and when the agent is gone, even by `kill -9`.
#include "runner/node/tester_process.hpp"

namespace mlenv::job {

class StorageTester : public TesterProcess {
 public:
  /// One that hangs outlives the agent, whose own output would have no end then.
  StorageTester() : TesterProcess("storage", Words::nowhere) {}
  StorageTester(const StorageTester&) = delete;
  StorageTester& operator=(const StorageTester&) = delete;
  /// Gives it a moment to take away what it left.
  ~StorageTester();
};

/// Its process: answers what is asked on standard input, until that ends.
void serve_storage_tests();

}  // namespace mlenv::job
