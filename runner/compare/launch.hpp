#pragma once
// One start of a command from outside: when it said what, when it ended. It has ended when the call
// returns, as its minder ends things.
#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/compare/started.hpp"

namespace mlenv::compare {

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT as something to wait for, as long as it lives. Those that
/// were ignored before stay so.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();
  int fd() const { return fd_.get(); }
  /// The first that came; 0: none.
  int came();
  /// Whether any came; may be asked by several threads, as long as none asks which.
  bool any() const;

 private:
  Fd fd_;
  sigset_t before_{};
  int came_ = 0;
};

struct Launched {
  Exit exit;
  bool timed_out = false;
  bool stopped = false;                 ///< by a signal to us; nothing of it counts
  double seconds = 0;                   ///< from start to end
  std::map<std::string, double> marks;  ///< seconds after the start, by name
  std::optional<double> last_line;      ///< seconds after the start
  std::string out;
  std::string err;
};

/// Starts it and waits for its end, whoever else still holds its streams; ends it at the deadline
/// or when a signal came. Its standard input is empty, and lines of its standard output are looked
/// at as they come.
Launched launch(const Minder& minder, const Command& command, std::chrono::milliseconds deadline,
                StopSignals& signals);

/// A command that says a line and then waits for the end of its standard input.
class Waiting {
 public:
  Waiting(const Minder& minder, Command command);
  /// Until it has said its line; false: it ended, time is up, or a signal came.
  bool ready(std::chrono::milliseconds deadline, StopSignals& signals);
  /// Lets it end; ends it where it does not.
  void end(std::chrono::milliseconds deadline);

 private:
  Pipe in_;
  Pipe out_;
  std::optional<Started> child_;
};

}  // namespace mlenv::compare
