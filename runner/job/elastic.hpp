#pragma once
// When a job of MIN:MAX nodes goes on with fewer of them, and when a node that is away is asked
// again. Plain.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runner/job/job.hpp"

namespace mlenv::job {

/// It is of MIN:MAX nodes.
bool is_elastic(const Job& job);
/// It takes nodes in while it runs: only where its ranks have somewhere to keep what they have
/// done, and not where others go on while workers are away (`ServerRoles::async`).
bool may_grow(const Job& job);

struct AttemptEnd {
  bool failed = false;
  bool node_lost = false;  ///< meanwhile
  bool to_grow = false;    ///< its ranks were told to end, since more nodes are ready
  std::size_t ready = 0;   ///< nodes that are left
};

enum class Next {
  end,
  restart,  ///< one of `Job::restarts`
  regroup,  ///< nodes went or came, and there are enough: costs no restart
};

/// What follows an attempt, where nobody ends the job.
Next next_after(const AttemptEnd& end, const Job& job, std::uint64_t restarts_used);

/// When a node that was lost is tried again: after a second, two, four … ten minutes. A node that
/// was there for ten minutes begins anew. So one that comes and goes disturbs a job less and less.
class BackOff {
 public:
  using Clock = std::chrono::steady_clock;

  void opened(Clock::time_point now) { opened_ = now; }
  void lost(Clock::time_point now);
  bool due(Clock::time_point now) const { return !next_ || now >= *next_; }

 private:
  std::chrono::seconds pause_{0};
  std::optional<Clock::time_point> opened_;
  std::optional<Clock::time_point> next_;
};

}  // namespace mlenv::job
