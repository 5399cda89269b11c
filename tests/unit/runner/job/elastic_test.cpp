#include "runner/job/elastic.hpp"

#include <gtest/gtest.h>

#include "runner/job/rank_policy.hpp"

namespace mlenv::job {
namespace {

using std::chrono::seconds;

Job of_nodes(std::uint64_t least, std::uint64_t most, std::uint64_t restarts) {
  Job job;
  job.nodes = {least, most};
  job.restarts = restarts;
  return job;
}

AttemptEnd lost(std::size_t ready) { return {true, true, false, ready}; }
AttemptEnd failed() { return {true, false, false, 4}; }

TEST(Elastic, LostNodesCostNoRestartWhileThereAreEnough) {
  const Job job = of_nodes(2, 4, 1);
  EXPECT_EQ(next_after(lost(3), job, 0), Next::regroup);
  EXPECT_EQ(next_after(lost(2), job, 1), Next::regroup);
  EXPECT_EQ(next_after(lost(1), job, 0), Next::restart);
  EXPECT_EQ(next_after(lost(1), job, 1), Next::end);
}

TEST(Elastic, RanksThatFailAndJobsOfOneSizeCostOne) {
  EXPECT_EQ(next_after(failed(), of_nodes(2, 4, 1), 0), Next::restart);
  EXPECT_EQ(next_after(failed(), of_nodes(2, 4, 1), 1), Next::end);
  // One that took the lost one's place makes no difference.
  EXPECT_EQ(next_after(lost(4), of_nodes(4, 4, 0), 0), Next::end);
  EXPECT_EQ(next_after(lost(3), of_nodes(4, 4, 2), 1), Next::restart);
}

TEST(Elastic, GrowingIsNoFailureUnlessSomethingFailed) {
  const Job job = of_nodes(2, 4, 0);
  EXPECT_EQ(next_after({false, false, true, 4}, job, 0), Next::regroup);
  EXPECT_EQ(next_after({false, false, false, 4}, job, 0), Next::end);
  EXPECT_EQ(next_after({true, false, true, 4}, job, 0), Next::end);
  EXPECT_EQ(next_after({true, true, true, 3}, job, 0), Next::regroup);
}

TEST(Elastic, GrowsOnlyWhereNothingIsLostByIt) {
  Job job = of_nodes(2, 4, 0);
  EXPECT_FALSE(may_grow(job));
  job.checkpoints.emplace();
  EXPECT_TRUE(may_grow(job));
  job.roles.async = true;
  EXPECT_FALSE(may_grow(job));
  job = of_nodes(4, 4, 0);
  job.checkpoints.emplace();
  EXPECT_FALSE(may_grow(job));
}

TEST(BackOff, DoublesUpToTenMinutes) {
  BackOff back_off;
  BackOff::Clock::time_point now{};
  EXPECT_TRUE(back_off.due(now));
  for (const int pause : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600}) {
    back_off.lost(now);
    EXPECT_FALSE(back_off.due(now + seconds(pause) - seconds(1)));
    EXPECT_TRUE(back_off.due(now + seconds(pause)));
    now += seconds(pause);
    back_off.opened(now);
  }
}

TEST(BackOff, ForgetsWhatWasBeforeATimeThatWentWell) {
  BackOff back_off;
  BackOff::Clock::time_point now{};
  for (int i = 0; i < 5; ++i) back_off.lost(now);
  EXPECT_FALSE(back_off.due(now + seconds(15)));
  back_off.opened(now);
  now += seconds(599);
  back_off.lost(now);
  EXPECT_FALSE(back_off.due(now + seconds(31)));
  back_off.opened(now);
  now += seconds(600);
  back_off.lost(now);
  EXPECT_TRUE(back_off.due(now + seconds(1)));
}

Fate fate(const char* role, bool async, bool chief = true) {
  Job job;
  job.strategy = Strategy::parameter_server;
  job.roles.async = async;
  job.roles.chief = chief;
  Rank rank;
  rank.role = role;
  return fate_of(rank, job);
}

TEST(RankPolicy, AsynchronousWorkersAreReplacedAndNobodyElse) {
  EXPECT_EQ(fate("worker", true), Fate::replaced);
  EXPECT_EQ(fate("evaluator", true), Fate::replaced);
  EXPECT_EQ(fate("ps", true), Fate::fatal);
  EXPECT_EQ(fate("chief", true), Fate::fatal);
  for (const char* role : {"worker", "evaluator", "ps", "chief"}) {
    EXPECT_EQ(fate(role, false), Fate::fatal) << role;
    // Nobody gives their work to others.
    EXPECT_EQ(fate(role, true, false), Fate::fatal) << role;
  }
  Job job;
  job.roles.async = true;  // of another strategy
  Rank rank;
  rank.role = "worker";
  EXPECT_EQ(fate_of(rank, job), Fate::fatal);
}

TEST(Replacement, GivesUpOnARankThatOnlyEverBegins) {
  Replacement again;
  Replacement::Clock::time_point now{};
  EXPECT_FALSE(again.due(now));
  for (const int pause : {1, 2}) {
    again.started(now);
    EXPECT_FALSE(again.waits());
    now += seconds(5);
    ASSERT_TRUE(again.failed(now));
    EXPECT_FALSE(again.due(now + seconds(pause) - std::chrono::milliseconds(1)));
    EXPECT_TRUE(again.due(now + seconds(pause)));
  }
  again.started(now);
  EXPECT_FALSE(again.failed(now + seconds(5)));
}

TEST(Replacement, OneThatWorkedForAWhileBeginsAnew) {
  Replacement again;
  Replacement::Clock::time_point now{};
  for (int i = 0; i < 20; ++i) {
    again.started(now);
    now += seconds(i % 2 == 0 ? 10 : 1);
    ASSERT_TRUE(again.failed(now));
  }
  // A node's loss is not the rank's fault, and it waits for nothing but the node.
  again.started(now);
  again.node_lost(now);
  EXPECT_TRUE(again.due(now));
}

}  // namespace
}  // namespace mlenv::job
