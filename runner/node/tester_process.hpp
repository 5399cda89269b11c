#pragma once
// A process of a node's agent that answers questions, each on a line, one by one: it may wait on a
// network or a file system while the agent goes on to be heard.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"

namespace mlenv::job {

/// The agent's side.
class TesterProcess {
 public:
  enum class Words { with_ours, nowhere };  ///< where its standard error goes

  /// Starts `mlenv-node WORK` (runner/node/work.hpp).
  TesterProcess(std::string_view work, Words words);

  /// A request as it came; answered in turn.
  void ask(const std::string& request);
  int fd() const { return answers_.get(); }  ///< readable: `hear`; -1 once it has ended
  /// Answers that have come, each a line as it is to be passed on; an empty one: it has ended.
  std::vector<std::string> hear();
  /// Asks nothing more, and waits for its end, but no longer than that.
  void let_go(std::chrono::milliseconds patience);

 private:
  Fd requests_;
  Fd answers_;
  std::optional<Child> child_;
  std::string bytes_;
};

/// Whole lines of what has come, without their newlines; the rest stays.
std::vector<std::string> take_lines(std::string& bytes);
/// Appends what there is to read. False: there is nothing more to come, or a line without an end.
bool read_more(int fd, std::string& bytes);

}  // namespace mlenv::job
