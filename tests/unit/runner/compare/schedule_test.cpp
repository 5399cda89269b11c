#include "runner/compare/schedule.hpp"

#include <gtest/gtest.h>

namespace mlenv::compare {
namespace {

/// Rounds that each probe gets in so many seconds, starts taking what was guessed.
std::vector<std::uint64_t> rounds(std::vector<PlannedProbe> probes, double left) {
  while (const auto next = next_probe(probes, left)) {
    PlannedProbe& probe = probes.at(*next);
    for (const double seconds : probe.guessed) left -= seconds;
    EXPECT_GE(left, 0) << "the budget is kept";
    ++probe.done;
  }
  std::vector<std::uint64_t> done;
  for (const PlannedProbe& probe : probes) done.push_back(probe.done);
  return done;
}

PlannedProbe probe(std::uint64_t wanted, std::vector<double> guessed) {
  PlannedProbe planned;
  planned.wanted = wanted;
  planned.guessed = std::move(guessed);
  return planned;
}

using Rounds = std::vector<std::uint64_t>;

TEST(CompareSchedule, AllIsDoneWhereThereIsTime) {
  EXPECT_EQ(rounds({probe(10, {1, 1}), probe(5, {2, 2}), probe(1, {3})}, 1000), (Rounds{10, 5, 1}));
}

TEST(CompareSchedule, RepetitionsGoBeforeRows) {
  // 3 × 2 s each round: time for one round of all and four more of the most important one.
  EXPECT_EQ(rounds({probe(10, {1, 1}), probe(10, {1, 1}), probe(10, {1, 1})}, 15),
            (Rounds{5, 1, 1}));
}

TEST(CompareSchedule, TheMostImportantGetWhatAClaimNeeds) {
  const Rounds done = rounds({probe(10, {1}), probe(10, {1}), probe(10, {1}), probe(10, {1})}, 12);
  EXPECT_EQ(done, (Rounds{5, 5, 1, 1}));
}

TEST(CompareSchedule, WhatDoesNotFitIsLeftOutAndOthersGoOn) {
  EXPECT_EQ(rounds({probe(5, {100}), probe(5, {1})}, 10), (Rounds{0, 5}));
  std::vector<PlannedProbe> probes{probe(5, {100})};
  EXPECT_FALSE(next_probe(probes, 10).has_value());
  EXPECT_TRUE(probes[0].given_up);
}

TEST(CompareSchedule, ARoundNeedsTimeForAllSides) {
  EXPECT_EQ(rounds({probe(9, {3, 3, 3})}, 17.9), (Rounds{1}));
  EXPECT_EQ(rounds({probe(9, {3, 3, 3})}, 18), (Rounds{2}));
}

TEST(CompareSchedule, AProbeWithoutSidesIsNotStarted) {
  EXPECT_EQ(rounds({probe(9, {}), probe(2, {1})}, 100), (Rounds{0, 2}));
}

TEST(CompareSchedule, AWarmUpComesOnTopOfWhatAClaimNeeds) {
  PlannedProbe warmed = probe(11, {1});
  warmed.warm_up = 1;
  EXPECT_EQ(rounds({warmed, probe(10, {1})}, 7), (Rounds{6, 1}));
}

TEST(CompareSchedule, WhatWaitsIsNotStartedYet) {
  PlannedProbe later = probe(5, {1});
  later.waits = true;
  EXPECT_EQ(rounds({later, probe(2, {1})}, 100), (Rounds{0, 2}));
}

TEST(CompareSchedule, SidesBeginInTurn) {
  EXPECT_EQ(turn(3, 0), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(turn(3, 1), (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_EQ(turn(3, 5), (std::vector<std::size_t>{2, 0, 1}));
  EXPECT_TRUE(turn(0, 1).empty());
}

}  // namespace
}  // namespace mlenv::compare
