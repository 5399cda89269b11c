#pragma once
// What the end of one rank means for the others. Plain.
#include <chrono>
#include <cstdint>
#include <optional>

#include "runner/job/job.hpp"
#include "runner/job/plan.hpp"

namespace mlenv::job {

enum class Fate {
  fatal,     ///< the attempt ends for all
  replaced,  ///< the rank is started again, and the others go on
};

/// Of a rank that failed, or whose node was lost. All are fatal but, with parameter servers that
/// are asynchronous and a chief, workers, whose work the chief gives to others meanwhile, and the
/// evaluator, on whom nobody waits: a server's variables are gone with it.
Fate fate_of(const Rank& rank, const Job& job);

/// When a rank that failed is started again: after a second, or two if it had only begun.
class Replacement {
 public:
  using Clock = std::chrono::steady_clock;

  void started(Clock::time_point now);
  /// By itself. False: it failed three times running, each within ten seconds of its start, and
  /// will not do better a fourth time.
  bool failed(Clock::time_point now);
  /// With its node, which says nothing of the rank.
  void node_lost(Clock::time_point now) { at_ = now; }
  bool waits() const { return at_.has_value(); }
  bool due(Clock::time_point now) const { return at_ && now >= *at_; }

 private:
  std::optional<Clock::time_point> began_;
  std::optional<Clock::time_point> at_;
  std::uint64_t quick_ = 0;
};

}  // namespace mlenv::job
