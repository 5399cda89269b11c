#include "runner/job/swarm.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/rounds.hpp"

namespace mlenv::job {
namespace {

/// Nodes and a source whose links carry a piece a round each way, played to the end.
class Play {
 public:
  Play(std::size_t nodes, std::size_t pieces) : swarm_(pieces), nodes_(nodes) {
    for (std::size_t i = 0; i < nodes; ++i) {
      swarm_.serves(i);
      swarm_.join(i, {});
    }
  }
  Swarm& swarm() { return swarm_; }
  /// So many rounds until all are whole; 0: they never are.
  std::size_t rounds() {
    for (std::size_t round = 1; round < 10'000; ++round) {
      play(round);
      bool whole = true;
      for (std::size_t i = 0; i < nodes_; ++i) whole = whole && swarm_.whole(i);
      if (whole) return round;
    }
    return 0;
  }
  std::size_t sent = 0;                             ///< by the source
  std::size_t fetched = 0;                          ///< between nodes
  std::size_t mute = static_cast<std::size_t>(-1);  ///< a node that answers nobody

 private:
  void play(std::size_t round) {
    std::vector<std::pair<std::size_t, std::size_t>> came;
    // The source's turn goes round; a node gets one piece by its link.
    const std::size_t to = round % nodes_;
    std::vector<bool> full(nodes_, false);
    for (std::size_t i = 0; i < nodes_; ++i) {
      const std::size_t node = (to + i) % nodes_;
      const auto piece = swarm_.next_from_source(node);
      if (!piece) continue;
      came.emplace_back(node, *piece);
      full[node] = true;
      ++sent;
      break;
    }
    std::vector<bool> gives(nodes_, false);
    for (std::size_t node = 0; node < nodes_; ++node) {
      if (full[node]) continue;
      const auto fetch = swarm_.next_fetch(node);
      if (!fetch) continue;
      if (fetch->from == mute) {
        swarm_.unreachable(node, fetch->piece, fetch->from);
        continue;
      }
      if (gives[fetch->from]) {  // its link is busy: again in the next round
        waiting_[node].push_back(*fetch);
        continue;
      }
      gives[fetch->from] = true;
      came.emplace_back(node, fetch->piece);
      ++fetched;
    }
    for (auto& one : waiting_) {
      if (one.second.empty() || gives[one.second.back().from]) continue;
      gives[one.second.back().from] = true;
      came.emplace_back(one.first, one.second.back().piece);
      one.second.pop_back();
      ++fetched;
    }
    for (const auto& one : came) (void)swarm_.arrived(one.first, one.second);
  }

  Swarm swarm_;
  std::size_t nodes_;
  std::map<std::size_t, std::vector<Swarm::Fetch>> waiting_;
};

TEST(Swarm, EachPieceLeavesTheSourceOnceAndTimeHardlyGrowsWithNodes) {
  constexpr std::size_t kPieces = 200;
  for (const std::size_t nodes : {1U, 2U, 4U, 16U, rounds(32U, 64U)}) {
    Play play{nodes, kPieces};
    const std::size_t took = play.rounds();
    EXPECT_EQ(play.sent, kPieces) << nodes;
    EXPECT_EQ(play.fetched, kPieces * (nodes - 1)) << nodes;
    EXPECT_GE(took, kPieces) << nodes;
    EXPECT_LE(took, 5 * kPieces / 2) << nodes;
  }
}

TEST(Swarm, WhoHasItGivesItAndTheSourceSendsNothing) {
  Swarm swarm{3};
  swarm.serves(0);
  swarm.serves(1);
  swarm.join(0, {true, true, true});
  swarm.join(1, {true, false, false});
  EXPECT_TRUE(swarm.whole(0));
  EXPECT_FALSE(swarm.next_from_source(1));
  for (int i = 0; i < 2; ++i) {
    const auto fetch = swarm.next_fetch(1);
    ASSERT_TRUE(fetch);
    EXPECT_EQ(fetch->from, 0U);
    EXPECT_TRUE(swarm.arrived(1, fetch->piece));
  }
  EXPECT_TRUE(swarm.whole(1));
  EXPECT_FALSE(swarm.next_fetch(1));
}

TEST(Swarm, ANodeThatNobodyReachesIsServedByTheSource) {
  Play play{3, 50};
  play.mute = 1;
  EXPECT_GT(play.rounds(), 0U);
  // What the mute node alone had been sent comes to others from the source, or from each other.
  EXPECT_LT(play.sent, 150U);

  Swarm alone{2};
  alone.serves(0);
  alone.join(0, {true, true});
  alone.join(1, {});
  const auto fetch = alone.next_fetch(1);
  ASSERT_TRUE(fetch);
  EXPECT_FALSE(alone.next_from_source(1));
  alone.unreachable(1, fetch->piece, 0);
  EXPECT_FALSE(alone.next_fetch(1));
  EXPECT_TRUE(alone.next_from_source(1));
  EXPECT_TRUE(alone.next_from_source(1));
  EXPECT_FALSE(alone.next_from_source(1));
}

TEST(Swarm, WhatALostNodeAloneHadIsSentAgain) {
  Swarm swarm{1};
  swarm.serves(0);
  swarm.serves(1);
  swarm.join(0, {});
  swarm.join(1, {});
  EXPECT_EQ(swarm.next_from_source(0), 0U);
  EXPECT_FALSE(swarm.next_from_source(1));
  EXPECT_EQ(swarm.next_for_impatient(1), 0U);
  swarm.leave(1);
  swarm.join(1, {});
  EXPECT_FALSE(swarm.next_from_source(1));
  (void)swarm.arrived(0, 0);
  const auto fetch = swarm.next_fetch(1);
  ASSERT_TRUE(fetch);
  swarm.leave(0);
  EXPECT_FALSE(swarm.next_fetch(1));
  EXPECT_EQ(swarm.next_from_source(1), 0U);
}

TEST(Swarm, WhatWasSpoiltComesFromTheSourceAlone) {
  Swarm swarm{4};
  for (const std::size_t node : {0U, 1U}) swarm.serves(node);
  swarm.join(0, {true, true, true, true});
  swarm.join(1, {true, true, true, false});
  swarm.spoilt(1, 0, 2);
  EXPECT_EQ(swarm.count(1), 1U);
  EXPECT_FALSE(swarm.next_fetch(1));
  EXPECT_EQ(swarm.next_from_source(1), 0U);
  EXPECT_EQ(swarm.next_from_source(1), 1U);
  EXPECT_EQ(swarm.next_from_source(1), 3U);
  EXPECT_FALSE(swarm.next_from_source(1));
}

TEST(Swarm, WhatDoesNotComeFromTheSourceIsWantedAgain) {
  Swarm swarm{4};
  for (const std::size_t node : {0U, 1U}) {
    swarm.serves(node);
    swarm.join(node, {});
  }
  EXPECT_EQ(swarm.next_from_source(0), 0U);
  EXPECT_TRUE(swarm.also_from_source(0, 1));
  EXPECT_FALSE(swarm.also_from_source(0, 1));
  EXPECT_FALSE(swarm.also_from_source(1, 1)) << "it comes from the other one";
  EXPECT_EQ(swarm.next_from_source(1), 2U);
  EXPECT_TRUE(swarm.comes(1, 1));
  (void)swarm.arrived(0, 0);
  swarm.dropped(0, 0);  // it is there
  swarm.dropped(0, 1);
  EXPECT_TRUE(swarm.has(0, 0));
  EXPECT_FALSE(swarm.comes(1, 1));
  EXPECT_EQ(swarm.next_from_source(1), 1U);
  EXPECT_EQ(swarm.next_from_source(0), 3U);
}

TEST(Swarm, NoNodeIsAskedForMoreThanItsShare) {
  constexpr std::size_t kPieces = 100;
  Swarm swarm{kPieces};
  swarm.serves(0);
  swarm.join(0, std::vector<bool>(kPieces, true));
  std::size_t asked = 0;
  for (std::size_t node = 1; node <= 8; ++node) {
    swarm.join(node, {});
    std::size_t own = 0;
    while (swarm.next_fetch(node)) ++own;
    EXPECT_LE(own, Swarm::kMostOfOne);
    asked += own;
  }
  EXPECT_EQ(asked, Swarm::kMostUploads);
}

}  // namespace
}  // namespace mlenv::job
