#include "runner/job/job_status.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace mlenv::job {
namespace {

RankResult rank_of_role(std::uint64_t rank, const char* role, std::uint64_t status) {
  RankResult result;
  result.rank.rank = rank;
  result.rank.role = role;
  result.end.emplace();
  result.end->exit_code = status;
  return result;
}

JobOutcome of(std::vector<RankResult> ranks, std::optional<FirstFailure> failure = {}) {
  JobOutcome outcome;
  outcome.attempts.emplace_back();
  outcome.attempts.back().ranks = std::move(ranks);
  outcome.attempts.back().failure = std::move(failure);
  return outcome;
}

TEST(JobStatus, IsThatOfWhatFailedFirst) {
  const Job job;
  EXPECT_EQ(status_of(of({rank_of_role(0, "worker", 0)}), job, false), 0);
  const FirstFailure rank{FirstFailure::What::rank, 1, "b", ""};
  EXPECT_EQ(
      status_of(of({rank_of_role(0, "worker", 1), rank_of_role(1, "worker", 7)}, rank), job, false),
      7);
  const FirstFailure node{FirstFailure::What::node, 0, "b", "gone"};
  EXPECT_EQ(status_of(of({rank_of_role(0, "worker", 1)}, node), job, false), 125);
  EXPECT_EQ(status_of(JobOutcome{}, job, false), 125);
}

TEST(JobStatus, OfOneThatWasToldToEndIsItsPrograms) {
  const Job job;
  JobOutcome outcome = of({rank_of_role(0, "worker", 143), rank_of_role(1, "worker", 5)});
  outcome.signal = SIGINT;
  EXPECT_EQ(status_of(outcome, job, false), 5);
  outcome.attempts.back().ranks.back() = rank_of_role(1, "worker", 143);
  EXPECT_EQ(status_of(outcome, job, false), 130);
  outcome.attempts.back().ranks = {rank_of_role(0, "worker", 0), rank_of_role(1, "worker", 0)};
  EXPECT_EQ(status_of(outcome, job, false), 0);
  // Before the next attempt the last one's ends are old news.
  EXPECT_EQ(status_of(outcome, job, true), 130);
  outcome.signal = 0;
  outcome.ended_by = EndedBy::stop;
  EXPECT_EQ(status_of(outcome, job, true), 143);
  outcome.attempts.clear();
  EXPECT_EQ(status_of(outcome, job, false), 143);
  outcome.ended_by = EndedBy::timeout;
  EXPECT_EQ(status_of(outcome, job, false), 124);
}

TEST(JobStatus, IsTheChiefsWhereThereIsOne) {
  Job job;
  job.strategy = Strategy::parameter_server;
  EXPECT_TRUE(is_essential(rank_of_role(0, "chief", 0).rank, job));
  EXPECT_FALSE(is_essential(rank_of_role(1, "worker", 0).rank, job));
  JobOutcome outcome = of({rank_of_role(0, "chief", 0), rank_of_role(1, "ps", 143)});
  outcome.signal = SIGTERM;
  EXPECT_EQ(status_of(outcome, job, false), 0);
  job.roles.chief = false;
  EXPECT_TRUE(is_essential(rank_of_role(1, "worker", 0).rank, job));
  EXPECT_FALSE(is_essential(rank_of_role(2, "ps", 0).rank, job));
}

}  // namespace
}  // namespace mlenv::job
