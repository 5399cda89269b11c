#include "runner/job/elastic.hpp"

#include <algorithm>

namespace mlenv::job {
namespace {

constexpr std::chrono::seconds kShortest{1};
constexpr std::chrono::seconds kLongestPause{600};

}  // namespace

bool is_elastic(const Job& job) { return job.nodes.least < job.nodes.most; }

bool may_grow(const Job& job) {
  return is_elastic(job) && job.checkpoints.has_value() && !job.roles.async;
}

Next next_after(const AttemptEnd& end, const Job& job, std::uint64_t restarts_used) {
  if (!end.failed) return end.to_grow ? Next::regroup : Next::end;
  if (is_elastic(job) && end.node_lost && end.ready >= job.nodes.least) return Next::regroup;
  return restarts_used < job.restarts ? Next::restart : Next::end;
}

void BackOff::lost(Clock::time_point now) {
  const bool was_well = opened_ && now - *opened_ >= kLongestPause;
  pause_ = was_well ? kShortest : std::clamp(2 * pause_, kShortest, kLongestPause);
  next_ = now + pause_;
  opened_.reset();
}

}  // namespace mlenv::job
