#include <gtest/gtest.h>

#include "runner/job/failure_text.hpp"
#include "tests/support/strings.hpp"

namespace mlenv::job {
namespace {

RankResult rank_of(std::uint64_t number, std::uint64_t status) {
  RankResult result;
  result.rank.rank = number;
  result.node = "node" + std::to_string(number);
  RankEnd end;
  end.exit_code = status;
  result.end = end;
  return result;
}

AttemptResult attempt_of(std::vector<RankResult> ranks) {
  AttemptResult attempt;
  attempt.ranks = std::move(ranks);
  attempt.failure = FirstFailure{
      FirstFailure::What::rank, attempt.ranks.back().rank.rank, attempt.ranks.back().node, {}};
  return attempt;
}

TEST(FailureText, IsEmptyWhereNothingFailed) { EXPECT_EQ(failure_text({}), Strings{}); }

TEST(FailureText, IsTheRankThatFailedFirstAndItsLastLines) {
  RankResult failed = rank_of(1, 3);
  for (int i = 1; i <= 20; ++i) {
    failed.last_lines.push_back("2026-03-01T10:00:00.000Z err F " +
                                (i == 20 ? "bell \a" : "line " + std::to_string(i)));
  }
  const Strings text = failure_text(attempt_of({rank_of(0, 143), failed}));
  ASSERT_EQ(text.size(), 13U);
  EXPECT_EQ(text[0], "mlenv: first, rank 1 on node1 ended with status 3");
  EXPECT_EQ(text[1], "    line 9");
  EXPECT_EQ(text[12].find('\a'), std::string::npos);
}

TEST(FailureText, LeavesOutWhatStandsJustAbove) {
  RankResult alone = rank_of(0, 3);
  alone.last_lines = {"2026-03-01T10:00:00.000Z err F gone"};
  EXPECT_EQ(failure_text(attempt_of({alone})),
            Strings{"mlenv: first, rank 0 on node0 ended with status 3"});
}

TEST(FailureText, NamesTheNodeThatWasLost) {
  AttemptResult attempt = attempt_of({rank_of(0, 143), rank_of(1, 143)});
  attempt.failure = FirstFailure{FirstFailure::What::node, 0, "node1", "nothing heard for 6 s"};
  EXPECT_EQ(failure_text(attempt),
            Strings{"mlenv: first, node node1 was lost: nothing heard for 6 s"});
}

}  // namespace
}  // namespace mlenv::job
