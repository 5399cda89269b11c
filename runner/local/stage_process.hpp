#pragma once
// The stage as our child.
#include "runner/local/stage.hpp"

namespace mlenv {

/// Starts the stage for `run`: as a plain copy of this process when it has a single thread (unshare
/// needs that, and the copy saves a second start of mlenv), else by running mlenv again. Signals of
/// `kForwarded` are never lost on the way. The destructor closes the socket, upon which the stage
/// ends the container and then itself, and waits for it.
class StageProcess {
 public:
  /// `before`: words of a program that starts the stage for us; empty: nobody does.
  explicit StageProcess(const LocalRun& run, std::vector<std::string> before = {});
  StageProcess(const StageProcess&) = delete;
  StageProcess& operator=(const StageProcess&) = delete;
  ~StageProcess();
  pid_t pid() const { return pid_; }
  /// Waits for its end, heeding `events` on the way. Throws what the stage threw; a stage that fell
  /// to a signal ended by it. One that is held up long after the run's timeout, or after a person
  /// has asked twice for its end, is killed and left.
  RunOutcome wait(RunEvents events);

 private:
  void copy_ourselves(const LocalRun& run, Fd theirs);
  void start_again(const LocalRun& run, std::vector<std::string> argv, Fd theirs);
  Exit reap();
  void leave();
  RunLife life_;
  Fd socket_;
  pid_t pid_ = -1;              ///< -1 once it has been waited for
  std::optional<Child> again_;  ///< when it is not a copy
};

}  // namespace mlenv
