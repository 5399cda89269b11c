#include "runner/compare/statistics.hpp"

#include <gtest/gtest.h>

namespace mlenv::compare {
namespace {

std::vector<double> up_to(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

TEST(CompareStatistics, MedianOfOddAndEvenCounts) {
  EXPECT_DOUBLE_EQ(summary_of({3, 1, 2}).median, 2);
  EXPECT_DOUBLE_EQ(summary_of({4, 1, 3, 2}).median, 2.5);
  EXPECT_DOUBLE_EQ(summary_of({7}).median, 7);
}

// Ranks of the tables that textbooks have: n = 6: 1 and 6; 10: 2 and 9; 20: 6 and 15; 70: 27
// and 44.
TEST(CompareStatistics, RanksAreThoseOfTheBinomialDistribution) {
  const auto ranks = [](int n) {
    const Summary summary = summary_of(up_to(n));
    return std::pair(summary.low, summary.high);
  };
  EXPECT_EQ(ranks(6), std::pair(1.0, 6.0));
  EXPECT_EQ(ranks(8), std::pair(1.0, 8.0));
  EXPECT_EQ(ranks(9), std::pair(2.0, 8.0));
  EXPECT_EQ(ranks(10), std::pair(2.0, 9.0));
  EXPECT_EQ(ranks(20), std::pair(6.0, 15.0));
  EXPECT_EQ(ranks(70), std::pair(27.0, 44.0));
}

TEST(CompareStatistics, LevelSaysWhatFewValuesAreWorth) {
  EXPECT_DOUBLE_EQ(summary_of(up_to(1)).level, 0);
  EXPECT_NEAR(summary_of(up_to(3)).level, 0.75, 1e-12);
  EXPECT_NEAR(summary_of(up_to(5)).level, 0.9375, 1e-12);
  EXPECT_NEAR(summary_of(up_to(6)).level, 0.96875, 1e-12);
  for (int n = 6; n <= 2000; n = n * 3 / 2) EXPECT_GE(summary_of(up_to(n)).level, kLevel) << n;
}

TEST(CompareStatistics, AnOutlierIsKept) {
  const Summary summary = summary_of({1, 1, 1, 1, 100});
  EXPECT_EQ(summary.count, 5U);
  EXPECT_DOUBLE_EQ(summary.high, 100);
}

Summary between(double low, double high, double level = 0.96) {
  return {(low + high) / 2, low, high, level, 6};
}

TEST(CompareStatistics, NothingIsClaimedWhereIntervalsTouch) {
  EXPECT_EQ(relate(between(1, 2), between(2, 3), Better::lower), Relation::overlap);
  EXPECT_EQ(relate(between(1, 5), between(2, 3), Better::higher), Relation::overlap);
  EXPECT_EQ(relate(between(1, 1.9), between(2, 3), Better::lower), Relation::better);
  EXPECT_EQ(relate(between(1, 1.9), between(2, 3), Better::higher), Relation::worse);
  EXPECT_EQ(relate(between(4, 5), between(2, 3), Better::lower), Relation::worse);
  EXPECT_EQ(relate(between(4, 5), between(2, 3), Better::higher), Relation::better);
  EXPECT_EQ(relate(between(4, 5), between(2, 3), Better::neither), Relation::overlap);
}

TEST(CompareStatistics, NothingIsClaimedOfTooFew) {
  EXPECT_EQ(relate(between(4, 5, 0.875), between(2, 3), Better::lower), Relation::too_few);
  EXPECT_EQ(relate(between(4, 5), between(2, 3, 0.5), Better::lower), Relation::too_few);
  EXPECT_EQ(relate(between(4, 5, 0.9375), between(2, 3), Better::lower), Relation::worse);
}

TEST(CompareStatistics, ManyValuesAreQuick) {
  std::vector<double> many(1'000'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i);
  const Summary summary = summary_of(std::move(many));
  EXPECT_NEAR(summary.low, 500'000 - 980, 2);
  EXPECT_NEAR(summary.high, 500'000 + 980, 2);
  EXPECT_GE(summary.level, kLevel);
}

}  // namespace
}  // namespace mlenv::compare
