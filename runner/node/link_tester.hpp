#pragma once
// A node's part of a preflight: what its controller asks about the links to the others
// (runner/job/link_test.hpp) is measured by a process of its own, so that the agent goes on to be
// heard whatever the network does. It ends with the agent, or when it is no longer needed.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"

namespace mlenv::job {

class LinkTester {
 public:
  LinkTester();

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
void serve_link_tests();

}  // namespace mlenv::job
