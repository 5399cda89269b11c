#pragma once
// A job beside others: its controller is a child of ours, that drives and records it as one in the
// foreground does, and ends with us, even by `kill -9`; its agents end with it.
#include <functional>
#include <optional>
#include <string>

#include "base/process.hpp"
#include "runner/job/detached_job.hpp"
#include "runner/local/supervised.hpp"

namespace mlenv::job {

class AttachedJob : public Supervised {
 public:
  /// Starts the controller, and waits for nothing. `notice`: what happens to nodes, a sentence
  /// each.
  AttachedJob(const DetachedJob& job, std::function<void(const std::string&)> notice);

  int fd() const override { return socket_.get(); }
  bool hear() override;
  const std::string& id() const override { return id_; }
  bool started() const override { return started_; }
  /// Before a rank runs it ends the start.
  void signal(int number) override { child_->signal(number); }
  void kill() override;
  const std::optional<RunOutcome>& outcome() const override { return outcome_; }
  const std::optional<Error>& failure() const override { return failure_; }

 private:
  void take(const std::string& frame);

  std::function<void(const std::string&)> notice_;
  Fd socket_;
  std::optional<Child> child_;
  std::string bytes_;
  std::string id_;
  bool started_ = false;
  std::optional<RunOutcome> outcome_;
  std::optional<Error> failure_;
};

/// The controller: as detached_job_main() (`mlenv __drive-beside`).
std::optional<int> attached_job_main(int argc, char** argv);

}  // namespace mlenv::job
