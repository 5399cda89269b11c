#pragma once
// One of several commands that run side by side, each looked after by a process of its own: a run
// on this machine (detached.hpp), or a job on several nodes (runner/job/attached_job.hpp).
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/local/run.hpp"

namespace mlenv {

class Supervised {
 public:
  Supervised() = default;
  Supervised(const Supervised&) = delete;
  Supervised& operator=(const Supervised&) = delete;
  virtual ~Supervised() = default;  ///< kills what still runs

  int fd() const { return socket_.get(); }  ///< readable: `hear`
  /// Takes what it says; false: it is over, and so is every process of it.
  bool hear();
  /// Of its record; empty: it has none yet.
  const std::string& id() const { return id_; }
  /// The command runs.
  bool started() const { return started_; }
  /// Passed on to the command; one that comes before it runs reaches it then, or ends its start.
  virtual void signal(int number) { signal_process(number); }
  /// Its process goes, and all that it started; its record is then without an end.
  void kill();

  /// Of one that is over: how, as far as it could say.
  const std::optional<RunOutcome>& outcome() const { return outcome_; }
  /// Why it was not run.
  const std::optional<Error>& failure() const { return failure_; }

 protected:
  /// `process` says at the other end of `socket`, in frames (stage.hpp), `{id}`, `{started}`, and
  /// in the end what render_outcome() gives; before that also words of its kind alone.
  void look_after(Child process, Fd socket);
  void signal_process(int number) { child_->signal(number); }
  /// A word of its kind; false: it is none.
  virtual bool take_own(const nlohmann::json& word) = 0;
  virtual void on_started() {}

 private:
  void take(const std::string& frame);

  Fd socket_;
  std::optional<Child> child_;
  std::string bytes_;
  std::string id_;
  bool started_ = false;
  std::optional<RunOutcome> outcome_;
  std::optional<Error> failure_;
};

}  // namespace mlenv
