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

 private:
  bool take_own(const nlohmann::json& word) override;

  std::function<void(const std::string&)> notice_;
};

/// The controller: as detached_job_main() (`mlenv __drive-beside`).
std::optional<int> attached_job_main(int argc, char** argv);

}  // namespace mlenv::job
