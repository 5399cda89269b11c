#pragma once
// A node's part of the proof that storage is the same on all nodes (runner/job/storage_proof.hpp):
// what its controller asks is looked at by a process of its own, so that the agent goes on to be
// heard where a file system does not answer. What that process left in storage it takes away when
// it is told to, when it is no longer needed, and when the agent is gone, even by `kill -9`.
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"

namespace mlenv::job {

class StorageTester {
 public:
  StorageTester();
  StorageTester(const StorageTester&) = delete;
  StorageTester& operator=(const StorageTester&) = delete;
  /// Gives it a moment to take away what it left.
  ~StorageTester();

  /// A request as it came; answered in turn.
  void ask(const std::string& request);
  int fd() const { return answers_.get(); }  ///< readable: `hear`; -1 once it has ended
  /// Answers that have come, each a line as it is to be passed on; an empty one: it has ended.
  std::vector<std::string> hear();

 private:
  Fd requests_;
  Fd answers_;
  std::optional<Child> child_;
  std::string bytes_;
};

/// Its process: answers what is asked on standard input, until that ends.
void serve_storage_tests();

}  // namespace mlenv::job
