#pragma once
// One of several commands that run side by side, each looked after by a process of its own: a run
// on this machine (detached.hpp), or a job on several nodes (runner/job/attached_job.hpp).
#include <optional>
#include <string>

#include "base/error.hpp"
#include "runner/local/run.hpp"

namespace mlenv {

class Supervised {
 public:
  Supervised() = default;
  Supervised(const Supervised&) = delete;
  Supervised& operator=(const Supervised&) = delete;
  virtual ~Supervised() = default;  ///< kills what still runs

  virtual int fd() const = 0;  ///< readable: `hear`
  /// Takes what it says; false: it is over, and so is every process of it.
  virtual bool hear() = 0;
  /// Of its record; empty: it has none yet.
  virtual const std::string& id() const = 0;
  /// The command runs.
  virtual bool started() const = 0;
  /// Passed on to the command; one that comes before it runs reaches it then, or ends its start.
  virtual void signal(int number) = 0;
  /// Its process goes, and all that it started; its record is then without an end.
  virtual void kill() = 0;

  /// Of one that is over: how, as far as it could say.
  virtual const std::optional<RunOutcome>& outcome() const = 0;
  /// Why it was not run.
  virtual const std::optional<Error>& failure() const = 0;
};

}  // namespace mlenv
