#pragma once
// An agent at the end of pipes to a process of this machine: the agent itself, ssh or srun.
#include <chrono>
#include <optional>
#include <string>

#include "base/process.hpp"
#include "runner/launch/node_starter.hpp"

namespace mlenv::job {

/// What is at the end of a stream of words that a person may have to read.
std::string last_lines(std::string_view text);

class StartedChild final : public StartedNode {
 public:
  /// `command` gets standard streams of ours; its other settings hold. `program`: a file that it
  /// takes to the node, open as it has it.
  StartedChild(Command command, std::chrono::milliseconds most_leaving, Fd program = {});
  StartedChild(const StartedChild&) = delete;
  StartedChild& operator=(const StartedChild&) = delete;
  /// Closes the streams that nobody has taken, gives it the time that it may need to take away what
  /// it made, and kills it then.
  ~StartedChild() override;
  NodeStream take_stream() override { return std::move(stream_); }
  /// Of a command that reads it from NodeProgram::kFd.
  ProgramSent program_sent() override;
  std::string last_words() override;
  bool gone() override;
  void let_go() override;

 private:
  using Clock = std::chrono::steady_clock;
  void forget_old_words();
  std::string words_in_file() const;

  NodeStream stream_;
  std::chrono::milliseconds most_leaving_;
  std::optional<Clock::time_point> end_by_;  ///< it was let go
  bool told_to_end_ = false;
  Fd program_;
  Fd said_;                  ///< a file in memory: its standard error
  std::string said_before_;  ///< the end of what was in it when it was emptied
  std::optional<Child> child_;
};

}  // namespace mlenv::job
