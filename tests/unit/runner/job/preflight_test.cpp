#include "runner/job/preflight.hpp"

#include <gtest/gtest.h>

#include <set>

#include "runner/job/link_test.hpp"
#include "tests/support/strings.hpp"

namespace mlenv::job {
namespace {

constexpr double kMega = 1e6;

/// Nodes n1 … whose links all carry so much.
Preflight all_alike(std::size_t nodes, double megabits, double seconds = 0.0001) {
  Preflight found;
  for (std::size_t i = 0; i < nodes; ++i) {
    found.nodes.push_back({"n" + std::to_string(i + 1), "10.0.0." + std::to_string(i + 1), "eth0",
                           std::nullopt, "boot-" + std::to_string(i)});
  }
  found.links = links_of(nodes);
  for (PreflightLink& link : found.links) {
    link.reached = kReached;
    link.bits_per_second = megabits * kMega;
    link.round_trip_seconds = seconds;
  }
  return found;
}

PreflightLink& link(Preflight& found, std::size_t from, std::size_t to) {
  return found.links[link_index(found.nodes.size(), from, to)];
}
void set(Preflight& found, std::size_t from, std::size_t to, double megabits) {
  link(found, from, to).bits_per_second = megabits * kMega;
}
std::vector<std::string> finding_texts(const Preflight& found) {
  std::vector<std::string> all;
  for (const PreflightFinding& one : found.findings) all.push_back(one.text);
  return all;
}
TEST(Tournament, MeetsEachPairOnceAndNobodyTwiceInARound) {
  for (std::size_t nodes : {0U, 1U, 2U, 3U, 4U, 7U, 8U, 64U, 65U}) {
    std::set<PreflightPair> met;
    const auto rounds = tournament(nodes);
    EXPECT_EQ(rounds.size(), nodes < 2 ? 0 : nodes - 1 + nodes % 2) << nodes;
    for (const auto& round : rounds) {
      std::set<std::size_t> busy;
      for (const auto& pair : round) {
        EXPECT_LT(pair.first, pair.second);
        EXPECT_LT(pair.second, nodes);
        EXPECT_TRUE(busy.insert(pair.first).second && busy.insert(pair.second).second);
        EXPECT_TRUE(met.insert(pair).second);
      }
    }
    EXPECT_EQ(met.size(), nodes * (nodes - (nodes > 0 ? 1 : 0)) / 2) << nodes;
  }
}

TEST(Preflight, IsFineWhereAllAreAlike) {
  Preflight found = all_alike(3, 940);
  judge(found);
  EXPECT_EQ(found.verdict, "fine");
  EXPECT_EQ(finding_texts(found), Strings{});
  EXPECT_EQ(link(found, 0, 1).standing, "fine");
  EXPECT_EQ(link(found, 0, 1).expected_bits_per_second, 940 * kMega);
}

TEST(Preflight, NamesASlowLink) {
  Preflight found = all_alike(4, 940);
  set(found, 1, 2, 96);
  judge(found);
  EXPECT_EQ(found.verdict, "slow");
  EXPECT_EQ(finding_texts(found),
            Strings{"n2 → n3: 96 Mbit/s, and 940 Mbit/s the other way; expected 940 Mbit/s"});
  EXPECT_EQ(found.findings.front().nodes, (std::vector<std::uint64_t>{1, 2}));
  set(found, 2, 1, 95);
  judge(found);
  EXPECT_EQ(finding_texts(found), Strings{"n2 ↔ n3: 96 Mbit/s and 95 Mbit/s; expected 940 Mbit/s"});
}

TEST(Preflight, NamesASlowNodeAndNotItsLinks) {
  Preflight found = all_alike(4, 940);
  for (const std::size_t other : {0U, 2U, 3U}) {
    set(found, 1, other, 96);
    set(found, other, 1, 97);
  }
  judge(found);
  EXPECT_EQ(finding_texts(found),
            Strings{"n2 (eth0) sends and receives slowly with all others: 96 Mbit/s; "
                    "expected 940 Mbit/s"});
  for (const std::size_t other : {0U, 2U, 3U}) set(found, other, 1, 940);
  judge(found);
  EXPECT_EQ(finding_texts(found),
            Strings{"n2 (eth0) sends slowly with all others: 96 Mbit/s; expected 940 Mbit/s"});
}

TEST(Preflight, KnowsTwoSlowNodesOfFour) {
  Preflight found = all_alike(4, 96);
  set(found, 0, 3, 940);
  set(found, 3, 0, 940);
  judge(found);
  ASSERT_EQ(found.findings.size(), 2U);
  EXPECT_EQ(found.findings[0].nodes, std::vector<std::uint64_t>{1});
  EXPECT_EQ(found.findings[1].nodes, std::vector<std::uint64_t>{2});
}

TEST(Preflight, ExpectsWhatInterfacesCanCarry) {
  Preflight found = all_alike(2, 96);
  judge(found);
  EXPECT_EQ(found.verdict, "fine");  // nothing to compare it with
  for (PreflightNode& node : found.nodes) node.speed_bits_per_second = 1000 * kMega;
  judge(found);
  EXPECT_EQ(finding_texts(found), Strings{"n1 ↔ n2: 96 Mbit/s and 96 Mbit/s; expected 940 Mbit/s"});
  found = all_alike(3, 6000);
  for (PreflightNode& node : found.nodes) node.speed_bits_per_second = 200000 * kMega;
  judge(found);
  EXPECT_EQ(found.verdict, "fine");  // one stream of TCP does not fill that
  found = all_alike(3, 96);
  for (PreflightNode& node : found.nodes) node.speed_bits_per_second = 1000 * kMega;
  judge(found);
  EXPECT_EQ(finding_texts(found), Strings{"all links are slow: 96 Mbit/s; expected 940 Mbit/s"});
}

TEST(Preflight, DoesNotMeasureTheProcessorsOfOneMachine) {
  Preflight found = all_alike(3, 12000);
  set(found, 0, 1, 600);
  judge(found);
  EXPECT_EQ(found.verdict, "slow");
  for (PreflightNode& node : found.nodes) node.boot_id = "one machine";
  judge(found);
  EXPECT_EQ(found.verdict, "fine");
  set(found, 0, 1, 400);
  judge(found);
  EXPECT_EQ(found.verdict, "slow");
}

TEST(Preflight, NamesALateLinkAndALateNode) {
  Preflight found = all_alike(3, 940);
  link(found, 0, 2).round_trip_seconds = 0.020;
  link(found, 2, 0).round_trip_seconds = 0.020;
  judge(found);
  EXPECT_EQ(finding_texts(found), Strings{"n1 ↔ n3: a round trip of 20 ms; others 0.10 ms"});
  link(found, 1, 2).round_trip_seconds = 0.020;
  link(found, 2, 1).round_trip_seconds = 0.020;
  judge(found);
  EXPECT_EQ(found.verdict, "fine");  // with three nodes most of the links are late then
  found = all_alike(4, 940);
  for (PreflightLink& one : found.links) {
    if (one.from == 2 || one.to == 2) one.round_trip_seconds = 0.020;
  }
  link(found, 0, 1).round_trip_seconds = 0.0001;
  judge(found);
  EXPECT_EQ(found.verdict, "fine");
  found = all_alike(5, 940);
  for (PreflightLink& one : found.links) {
    if (one.from == 2 || one.to == 2) one.round_trip_seconds = 0.020;
  }
  judge(found);
  EXPECT_EQ(finding_texts(found),
            Strings{"n3 (eth0) is far from all others: round trips of 20 ms; others 0.10 ms"});
}

TEST(Preflight, TellsHowALinkIsBroken) {
  Preflight found = all_alike(3, 940);
  PreflightLink& one = link(found, 0, 2);
  one.bits_per_second.reset();
  one.reached = kSilent;
  one.said = "no answer";
  judge(found);
  EXPECT_EQ(found.verdict, "broken");
  EXPECT_EQ(finding_texts(found),
            Strings{"n1 → n3: no answer within 3 s: a firewall drops it, or the address "
                    "is not on that network"});
  one.reached = kRefused;
  one.said = "Connection refused";
  judge(found);
  EXPECT_EQ(finding_texts(found),
            Strings{"n1 → n3: the connection is refused (Connection refused): a firewall "
                    "rejects it, or another machine has the address"});
  one.reached = kReached;
  one.said = "not one byte of a stream came";
  judge(found);
  EXPECT_NE(finding_texts(found).front().find("MTU"), std::string::npos);
}

TEST(Preflight, TellsWhoIsReachedByNobody) {
  Preflight found = all_alike(4, 940);
  for (const std::size_t other : {0U, 1U, 2U}) {
    PreflightLink& one = link(found, other, 3);
    one.bits_per_second.reset();
    one.reached = kUnreachable;
    one.said = "No route to host";
  }
  judge(found);
  EXPECT_EQ(finding_texts(found),
            Strings{"n4 (eth0) is reached by none of the others: there is no way (No "
                    "route to host)"});
  EXPECT_EQ(found.findings.front().kind, "node");
}

TEST(Preflight, TellsOfARingThatIsSlowerThanItsLinks) {
  Preflight found = all_alike(4, 940);
  found.ring.bytes = 1 << 20;
  found.ring.seconds = 0.1;
  found.ring.sums_right = true;
  found.ring.bus_bits_per_second = 126 * kMega;
  judge(found);
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings.front().kind, "ring");
  for (PreflightNode& node : found.nodes) node.boot_id = "one machine";
  judge(found);
  EXPECT_EQ(found.verdict, "fine");
}

TEST(Preflight, SaysRatesAsPeopleDo) {
  EXPECT_EQ(bits_text(941.4e6), "941 Mbit/s");
  EXPECT_EQ(bits_text(9.41e9), "9.4 Gbit/s");
  EXPECT_EQ(bits_text(9.41e6), "9.4 Mbit/s");
  EXPECT_EQ(bits_text(300), "0 kbit/s");
}

}  // namespace
}  // namespace mlenv::job
