#include "runner/job/activity.hpp"

#include <gtest/gtest.h>

namespace mlenv::job {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Activity::Time kBegin{seconds(1000)};
Activity::Time at_second(int second) { return kBegin + seconds(second); }

RankUse use(double cpu, const char* waits_for = "network", double queued = 0) {
  RankUse made;
  made.cpu_seconds = cpu;
  made.queued_seconds = queued;
  made.waits_for = waits_for;
  return made;
}

/// Three ranks on nodes of their own, of which nothing is heard but idleness.
class ActivityTest : public testing::Test {
 protected:
  void begin(const ActivityRules& rules) {
    activity_.emplace(rules);
    activity_->begin({{0, "n1"}, {1, "n2"}, {2, "n3"}}, at_second(0));
  }
  void all_idle(int from, int to) {
    for (int second = from; second <= to; second += 2) {
      for (std::uint64_t rank = 0; rank < 3; ++rank)
        activity_->use(rank, use(1), at_second(second));
    }
  }
  std::optional<Activity> activity_;
};

TEST_F(ActivityTest, TellsAStallOnceAndAgainAfterASignOfLife) {
  begin({});
  all_idle(2, 60);
  EXPECT_FALSE(activity_->news(at_second(61)));
  const auto news = activity_->news(at_second(62));
  ASSERT_TRUE(news);
  EXPECT_EQ(*news, "stalled: ranks 0-2 have done nothing for 60 s: 0-2 waiting for the network");
  EXPECT_FALSE(activity_->news(at_second(63)));
  EXPECT_FALSE(activity_->failed(at_second(5000)));  // nobody asked for that
  activity_->line(1, at_second(70));
  EXPECT_FALSE(activity_->news(at_second(71)));
  EXPECT_TRUE(activity_->news(at_second(131)));
}

TEST_F(ActivityTest, ATimeInWhichNobodyListenedIsNoStall) {
  begin({milliseconds(10000), false});
  all_idle(2, 8);
  activity_->not_heard_for(seconds(20));  // up to 28
  EXPECT_FALSE(activity_->failed(at_second(28)));
  EXPECT_FALSE(activity_->failed(at_second(31)));
  EXPECT_TRUE(activity_->failed(at_second(32)));
}

TEST_F(ActivityTest, NamesTheRankForWhichTheOthersWait) {
  begin({milliseconds(10000), false});
  all_idle(2, 8);
  RankUse stopped = use(1, "other");
  stopped.stopped = true;
  activity_->use(1, stopped, at_second(10));
  EXPECT_TRUE(activity_->news(at_second(10)));  // at half of the time
  EXPECT_FALSE(activity_->failed(at_second(11)));
  const auto stall = activity_->failed(at_second(12));
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->rank, 1U);
  EXPECT_EQ(
      stall->why,
      "stalled: ranks 0-2 have done nothing for 10 s: 1 stopped by a signal; 0, 2 waiting for "
      "the network (rank 1 on n2 is what the others wait for)");
}

TEST_F(ActivityTest, IsAliveByProcessorTimeOfOneRank) {
  begin({milliseconds(10000), false});
  for (int second = 2; second <= 60; second += 2) {
    activity_->use(0, use(1), at_second(second));
    activity_->use(1, use(1 + 0.1 * second), at_second(second));  // 10 %
    activity_->use(2, use(1), at_second(second));
  }
  EXPECT_FALSE(activity_->failed(at_second(61)));
  EXPECT_FALSE(activity_->news(at_second(61)));
}

TEST_F(ActivityTest, DoesNotCountWhoHasEnded) {
  begin({milliseconds(10000), false});
  all_idle(2, 4);
  activity_->over(0);
  activity_->over(1);
  const auto stall = activity_->failed(at_second(14));
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->why, "stalled: rank 2 has done nothing for 10 s: 2 waiting for the network");
  activity_->over(2);
  EXPECT_FALSE(activity_->failed(at_second(20)));
}

TEST_F(ActivityTest, OneThatIsStartedAgainIsAliveFromThenOn) {
  begin({milliseconds(10000), false});
  activity_->over(1);
  all_idle(2, 8);
  activity_->again(1, at_second(8));
  EXPECT_FALSE(activity_->failed(at_second(17)));
  for (const std::uint64_t rank : {0U, 1U, 2U}) activity_->use(rank, use(0), at_second(18));
  EXPECT_FALSE(activity_->failed(at_second(18)));  // its processor time begins anew
  for (const std::uint64_t rank : {0U, 1U, 2U}) activity_->use(rank, use(0), at_second(28));
  EXPECT_TRUE(activity_->failed(at_second(29)));
}

TEST_F(ActivityTest, SaysNothingOfRanksOfWhichNothingIsKnown) {
  begin({milliseconds(10000), false});
  EXPECT_FALSE(activity_->failed(at_second(100)));
  EXPECT_FALSE(activity_->news(at_second(100)));
}

TEST_F(ActivityTest, NamesANodeWhoseRanksWaitForAProcessor) {
  begin({std::nullopt, true});
  std::optional<std::string> news;
  for (int second = 2; second <= 40 && !news; second += 2) {
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
      activity_->use(rank, use(0.5 * second, "running", rank == 1 ? 0.5 * second : 0.02 * second),
                     at_second(second));
    }
    news = activity_->news(at_second(second));
  }
  ASSERT_TRUE(news);
  EXPECT_EQ(*news,
            "node n2 is behind: for 20 s its ranks have waited for a processor 50 % of the time, "
            "those of others 2 % at most; something else uses its processors, or they are limited");
  EXPECT_FALSE(activity_->news(at_second(41)));
}

TEST_F(ActivityTest, NamesANodeThatComputesWhileTheOthersWait) {
  for (const bool synchronous : {true, false}) {
    begin({std::nullopt, synchronous});
    std::optional<std::string> news;
    for (int second = 2; second <= 40 && !news; second += 2) {
      for (std::uint64_t rank = 0; rank < 3; ++rank) {
        activity_->use(rank, use((rank == 2 ? 0.98 : 0.3) * second, "running"), at_second(second));
      }
      news = activity_->news(at_second(second));
    }
    EXPECT_EQ(news.has_value(), synchronous);
    if (news) {
      EXPECT_EQ(*news,
                "node n3 is behind: for 20 s its ranks have used 98 % of a processor each, "
                "those of others 30 % at most: they wait for it");
    }
  }
}

TEST_F(ActivityTest, SaysNothingWhereAllAreAlike) {
  begin({std::nullopt, true});
  for (int second = 2; second <= 60; second += 2) {
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
      activity_->use(rank, use(0.95 * second, "running", 0.3 * second), at_second(second));
    }
    EXPECT_FALSE(activity_->news(at_second(second)));
  }
}

TEST(RankList, IsShort) {
  EXPECT_EQ(rank_list({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  EXPECT_EQ(rank_list({3}), "3");
}

}  // namespace
}  // namespace mlenv::job
