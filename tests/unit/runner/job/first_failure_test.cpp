#include <gtest/gtest.h>

#include "runner/job/drive.hpp"

namespace mlenv::job {
namespace {

constexpr double kTen = 1772359200;  // 2026-03-01T10:00:00Z

/// A rank that ended so many seconds after ten, by its node's clock.
RankResult rank_ended_at(std::uint64_t rank, const char* node, int second, std::uint64_t status) {
  RankResult result;
  result.rank.rank = rank;
  result.node = node;
  RunRecord record;
  record.state = status == 0 ? "done" : "failed";
  record.start.id = "20260301-100000-abcdef";
  record.end.emplace();
  record.end->ended = fmt::format("2026-03-01T10:00:{:02}.000Z", second);
  record.end->exit_code = status;
  RankEnd end;
  end.exit_code = status;
  end.record = render_run(record);
  result.end = end;
  return result;
}

TEST(FirstFailure, IsNoneWhereAllEndedWell) {
  EXPECT_FALSE(first_failure({rank_ended_at(0, "a", 1, 0), rank_ended_at(1, "b", 2, 0)}, {}, {}));
}

TEST(FirstFailure, IsTheRankThatEndedFirst) {
  const auto first =
      first_failure({rank_ended_at(0, "a", 5, 1), rank_ended_at(1, "b", 3, 9)}, {}, {});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->what, FirstFailure::What::rank);
  EXPECT_EQ(first->rank, 1U);
  EXPECT_EQ(first->node, "b");
}

TEST(FirstFailure, SetsClocksRight) {
  // By its own clock `b` ended first; that clock is ten seconds behind.
  const auto first = first_failure({rank_ended_at(0, "a", 5, 1), rank_ended_at(1, "b", 3, 9)},
                                   {{"a", 0}, {"b", -10}}, {});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->rank, 0U);
}

TEST(FirstFailure, IsNoRankThatWasToldToEnd) {
  RankResult told = rank_ended_at(0, "a", 1, 143);
  told.stopped = true;
  told.stop_sent = kTen;
  const auto first = first_failure({told, rank_ended_at(1, "b", 3, 9)}, {}, {});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->rank, 1U);
}

TEST(FirstFailure, IsARankThatHadEndedWhenItWasToldTo) {
  RankResult slow = rank_ended_at(0, "a", 2, 3);
  slow.stopped = true;
  slow.stop_sent = kTen + 4;
  const auto first = first_failure({slow, rank_ended_at(1, "b", 3, 9)}, {}, {});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->rank, 0U);
}

TEST(FirstFailure, IsTheNodeThatWentBeforeOthersNoticed) {
  RankResult gone;
  gone.rank.rank = 1;
  gone.node = "b";
  const auto first =
      first_failure({rank_ended_at(0, "a", 5, 1), gone}, {}, {{"b", kTen + 4, "silent for 6 s"}});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->what, FirstFailure::What::node);
  EXPECT_EQ(first->node, "b");
  EXPECT_EQ(first->why, "silent for 6 s");
  const auto rank =
      first_failure({rank_ended_at(0, "a", 3, 1), gone}, {}, {{"b", kTen + 4, "silent"}});
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->what, FirstFailure::What::rank);
}

TEST(FirstFailure, IsARankWithoutARecordWhereThereIsNoOther) {
  RankResult odd = rank_ended_at(2, "a", 1, 1);
  odd.end->record.clear();
  const auto first = first_failure({odd}, {}, {});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->rank, 2U);
  const auto other = first_failure({odd, rank_ended_at(3, "a", 9, 1)}, {}, {});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->rank, 3U);
}

}  // namespace
}  // namespace mlenv::job
