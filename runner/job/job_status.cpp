#include "runner/job/job_status.hpp"

#include <csignal>

#include "base/process.hpp"
#include "runner/job/roles.hpp"

namespace mlenv::job {
namespace {

/// Of ranks that were told to end: 0 where all took that well, else the first status that a
/// program gave itself, else `otherwise`.
int own_status(const AttemptResult& attempt, const Job& job, int otherwise) {
  bool well = true;
  for (const RankResult& rank : attempt.ranks) {
    if (!is_essential(rank.rank, job)) continue;
    if (!rank.end || rank.end->exit_code >= kSignalBase) {
      well = false;
    } else if (rank.end->exit_code != 0) {
      return static_cast<int>(rank.end->exit_code);
    }
  }
  return well ? 0 : otherwise;
}

/// Of an attempt that nobody told to end.
int status_of_attempt(const AttemptResult& attempt) {
  if (!attempt.failure) return 0;
  if (attempt.failure->what == FirstFailure::What::node) return kOwnFailureStatus;
  if (!attempt.failure->why.empty()) return kTimedOutStatus;  // it stalled, and was ended
  const RankResult& rank = attempt.ranks.at(attempt.failure->rank);
  return rank.end ? static_cast<int>(rank.end->exit_code) : kOwnFailureStatus;
}

}  // namespace

bool is_essential(const Rank& rank, const Job& job) {
  if (job.strategy == Strategy::mpi) return rank.role == kMpiLauncher;
  if (job.strategy != Strategy::parameter_server) return true;
  return rank.role == (job.roles.chief ? "chief" : "worker");
}

int status_of(const JobOutcome& outcome, const Job& job, bool between) {
  if (outcome.ended_by == EndedBy::timeout) return kTimedOutStatus;
  const bool asked = outcome.signal != 0 || outcome.ended_by == EndedBy::stop;
  if (!asked) {
    return outcome.attempts.empty() ? kOwnFailureStatus
                                    : status_of_attempt(outcome.attempts.back());
  }
  const int told = kSignalBase + (outcome.signal != 0 ? outcome.signal : SIGTERM);
  const bool ran = !outcome.attempts.empty() && !outcome.attempts.back().ranks.empty();
  return ran && !between ? own_status(outcome.attempts.back(), job, told) : told;
}

}  // namespace mlenv::job
