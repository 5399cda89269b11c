#include "runner/job/rank_policy.hpp"

namespace mlenv::job {
namespace {

constexpr std::chrono::seconds kQuick{10};
constexpr std::uint64_t kMostQuick = 3;

}  // namespace

Fate fate_of(const Rank& rank, const Job& job) {
  const bool goes_on =
      job.strategy == Strategy::parameter_server && job.roles.async && job.roles.chief;
  const bool is_spare = rank.role == "worker" || rank.role == "evaluator";
  return goes_on && is_spare ? Fate::replaced : Fate::fatal;
}

void Replacement::started(Clock::time_point now) {
  began_ = now;
  at_.reset();
}

bool Replacement::failed(Clock::time_point now) {
  const bool was_quick = began_ && now - *began_ < kQuick;
  quick_ = was_quick ? quick_ + 1 : 1;
  if (was_quick && quick_ >= kMostQuick) return false;
  at_ = now + std::chrono::seconds{quick_};
  return true;
}

}  // namespace mlenv::job
