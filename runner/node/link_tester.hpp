#pragma once
// A node's part of a preflight: what its controller asks about the links to the others
// (runner/job/link_test.hpp) is measured by a process of its own, so that the agent goes on to be
// heard whatever the network does. It ends with the agent, or when it is no longer needed.
#include "runner/node/tester_process.hpp"

namespace mlenv::job {

class LinkTester : public TesterProcess {
 public:
  LinkTester() : TesterProcess("links", Words::with_ours) {}
};

/// Its process: answers what is asked on standard input, until that ends.
void serve_link_tests();

}  // namespace mlenv::job
