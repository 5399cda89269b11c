#pragma once
// What a rank uses of its node, as `mlenv watch` sees it from outside (runner/watch): looked at
// every few seconds, costs the rank nothing.
#include <chrono>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "runner/job/node_link.hpp"
#include "runner/watch/watcher.hpp"

namespace mlenv::job {

class RankUseReader {
 public:
  /// `run_folder` is that of its record.
  RankUseReader(fs::path run_folder, std::string id)
      : run_folder_(std::move(run_folder)), id_(std::move(id)) {}
  /// nullopt: it was asked a moment ago, or its processes cannot be seen.
  std::optional<RankUse> now();

 private:
  using Clock = std::chrono::steady_clock;
  fs::path run_folder_;
  std::string id_;
  watch::ProcReader proc_;
  std::optional<watch::Anchor> anchor_;
  std::optional<Clock::time_point> asked_;
  int failures_ = 0;
};

}  // namespace mlenv::job
