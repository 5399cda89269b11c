#pragma once
// What the first program of a container tells of the command: that its folder could not be entered,
// or that it could not be executed (runner/engine/keeper/enter.hpp). The report ends when the
// command runs.
#include <optional>

#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/engine/keeper/protocol.hpp"

namespace mlenv {

class FirstReport {
 public:
  /// The program gets the other end, through the runtime.
  void go_with(Command& command) const;
  /// Once that command is started.
  void is_on_its_way() { pipe_.write_end.reset(); }
  /// Until the command runs, or is known not to; of one that takes very long nothing is known yet.
  std::optional<keeper::Failed> wait();
  /// What has come by now.
  std::optional<keeper::Failed> look();

 private:
  Pipe pipe_ = make_pipe();
  std::optional<keeper::Failed> failed_;
};

/// `bad-workdir` (usage); `run-failed` where the kernel takes no filter of system calls.
Error cannot_enter(const std::string& folder, const keeper::Failed& problem);

}  // namespace mlenv
