#include "runner/job/preflight.hpp"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "recipes/text.hpp"
#include "runner/job/link_test.hpp"

namespace mlenv::job {
namespace {

using Links = std::vector<PreflightLink>;

/// The upper of the two in the middle.
std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What the middle node gets on its best link: right as long as fewer than half of the nodes are
/// slow, however many links those spoil.
std::optional<double> usual_rate(const Preflight& found) {
  std::vector<double> best(found.nodes.size(), 0);
  for (const PreflightLink& link : found.links) {
    for (const std::uint64_t node : {link.from, link.to}) {
      best[node] = std::max(best[node], link.bits_per_second.value_or(0));
    }
  }
  std::erase(best, 0);
  return median(best);
}

std::optional<double> expected_link_bits(const Preflight& found, const PreflightLink& link,
                                         const std::optional<double>& usual) {
  const PreflightNode& from = found.nodes[link.from];
  const PreflightNode& to = found.nodes[link.to];
  const bool within = !from.boot_id.empty() && from.boot_id == to.boot_id;
  const double most = within ? kMostExpectedWithin : kMostExpectedBits;
  if (from.speed_bits_per_second && to.speed_bits_per_second) {
    return std::min(
        std::min(*from.speed_bits_per_second, *to.speed_bits_per_second) * kPayloadShare, most);
  }
  if (!usual) return std::nullopt;
  return std::min(*usual, most);
}

std::optional<double> usual_round_trip(const Links& links) {
  std::vector<double> all;
  for (const PreflightLink& link : links) {
    if (link.round_trip_seconds) all.push_back(*link.round_trip_seconds);
  }
  if (all.size() <= 2) return std::nullopt;  // one pair: nothing to compare it with
  return median(all);
}

std::string standing_of(const PreflightLink& link, const std::optional<double>& usual_trip) {
  if (!link.reached.empty() && link.reached != kReached) return "broken";
  if (!link.bits_per_second) return link.said.empty() ? "unmeasured" : "broken";
  if (link.expected_bits_per_second &&
      *link.bits_per_second < *link.expected_bits_per_second * kSlowShare) {
    return "slow";
  }
  if (usual_trip && link.round_trip_seconds &&
      *link.round_trip_seconds > *usual_trip * kLateTimes &&
      *link.round_trip_seconds > *usual_trip + kLateSeconds) {
    return "late";
  }
  return "fine";
}

std::string milliseconds_text(double seconds) {
  constexpr double kMilli = 1e3;
  const double value = seconds * kMilli;
  const int digits = value < 1 ? 2 : value < 10 ? 1 : 0;
  return fmt::format("{:.{}f} ms", value, digits);
}

/// Finds what explains the links of one standing, and says it.
class Findings {
 public:
  Findings(Preflight& found, std::string standing)
      : found_(found), standing_(std::move(standing)), count_(found.nodes.size()) {
    for (const PreflightLink& link : found.links) {
      if (link.standing == standing_) left_.insert({link.from, link.to});
    }
  }

  void add() {
    if (left_.empty()) return;
    if (left_.size() == found_.links.size() && count_ > 2) {
      say("all", {}, about_all());
      return;
    }
    if (count_ > 2) add_nodes();
    while (!left_.empty()) add_link(*left_.begin());
  }

 private:
  using Way = std::pair<std::uint64_t, std::uint64_t>;

  bool all_ways(std::uint64_t node, bool out) const {
    std::size_t bad = 0;
    for (std::uint64_t other = 0; other < count_; ++other) {
      if (other != node) bad += all_.count(out ? Way{node, other} : Way{other, node});
    }
    return bad == count_ - 1;
  }

  void add_nodes() {
    all_ = left_;
    for (std::uint64_t node = 0; node < count_; ++node) {
      const bool out = all_ways(node, true);
      const bool in = all_ways(node, false);
      if (!out && !in) continue;
      say("node", {node}, about_node(node, out, in));
      std::erase_if(left_, [&](const Way& way) {
        return (out && way.first == node) || (in && way.second == node);
      });
    }
  }

  void add_link(Way way) {
    const Way back{way.second, way.first};
    const bool both = left_.contains(back);
    say("link", {way.first, way.second}, about_link(way, both));
    left_.erase(way);
    left_.erase(back);
  }

  const PreflightLink& link(const Way& way) const {
    return found_.links[link_index(count_, way.first, way.second)];
  }
  const std::string& name(std::uint64_t node) const { return found_.nodes[node].name; }

  void say(std::string kind, std::vector<std::uint64_t> nodes, std::string text) const {
    found_.findings.push_back({std::move(kind), standing_, std::move(nodes), std::move(text)});
  }

  static std::string rate(const PreflightLink& link) {
    return bits_text(link.bits_per_second.value_or(0));
  }
  static std::string expected(const PreflightLink& link) {
    return bits_text(link.expected_bits_per_second.value_or(0));
  }
  static std::string trip(const PreflightLink& link) {
    return milliseconds_text(link.round_trip_seconds.value_or(0));
  }

  std::string usual_trip() const {
    return milliseconds_text(usual_round_trip(found_.links).value_or(0));
  }

  std::string about_all() const {
    const PreflightLink& one = link(*left_.begin());
    if (standing_ == "broken") return "no node reaches another: " + why_broken(one);
    return fmt::format("all links are slow: {}; expected {}", rate(one), expected(one));
  }

  std::string about_node(std::uint64_t node, bool out, bool in) const {
    const std::uint64_t other = node == 0 ? 1 : 0;
    const PreflightLink& one = link(out ? Way{node, other} : Way{other, node});
    const std::string who = found_.nodes[node].interface.empty()
                                ? name(node)
                                : fmt::format("{} ({})", name(node), found_.nodes[node].interface);
    if (standing_ == "broken") {
      return fmt::format("{} {}: {}", who,
                         out && in ? "and the others do not reach each other"
                         : in      ? "is reached by none of the others"
                                   : "reaches none of the others",
                         why_broken(one));
    }
    if (standing_ == "late") {
      return fmt::format("{} is far from all others: round trips of {}; others {}", who, trip(one),
                         usual_trip());
    }
    return fmt::format("{} {} slowly with all others: {}; expected {}", who,
                       out && in ? "sends and receives"
                       : in      ? "receives"
                                 : "sends",
                       rate(one), expected(one));
  }

  std::string about_link(const Way& way, bool both) const {
    const PreflightLink& there = link(way);
    const PreflightLink& back = link({way.second, way.first});
    const std::string ways =
        fmt::format("{} {} {}", name(way.first), both ? "↔" : "→", name(way.second));
    if (standing_ == "broken") return fmt::format("{}: {}", ways, why_broken(there));
    if (standing_ == "late") {
      return fmt::format("{}: a round trip of {}; others {}", ways, trip(there), usual_trip());
    }
    if (both) {
      return fmt::format("{}: {} and {}; expected {}", ways, rate(there), rate(back),
                         expected(there));
    }
    return fmt::format("{}: {}, and {} the other way; expected {}", ways, rate(there),
                       back.bits_per_second ? rate(back) : "nothing measured", expected(there));
  }

  /// What is known, and what it may be.
  static std::string why_broken(const PreflightLink& link) {
    const std::string said = link.said.empty() ? "" : fmt::format(" ({})", link.said);
    if (link.reached == kRefused) {
      return fmt::format(
          "the connection is refused{}: a firewall rejects it, or another machine "
          "has the address",
          said);
    }
    if (link.reached == kSilent) {
      return fmt::format("no answer{}: a firewall drops it, or the address is not on that network",
                         link.said == "no answer" ? " within 3 s" : said);
    }
    if (link.reached == kUnreachable) return fmt::format("there is no way{}", said);
    if (link.reached == kStranger) return fmt::format("somebody else answers there{}", said);
    if (link.reached == kNodeFailed) return link.said;
    return fmt::format(
        "it connects, and then data does not come through{}: a size of packets (MTU) "
        "that the way does not carry looks like this",
        said);
  }

  Preflight& found_;
  std::string standing_;
  std::size_t count_;
  std::set<Way> left_;  ///< not explained yet
  std::set<Way> all_;
};

/// On a machine that plays several nodes they divide its processors, too.
bool share_a_machine(const std::vector<PreflightNode>& nodes) {
  std::set<std::string> boots;
  for (const PreflightNode& node : nodes) boots.insert(node.boot_id);
  return boots.size() < nodes.size();
}

void judge_ring(Preflight& found) {
  PreflightRing& ring = found.ring;
  const std::size_t count = found.nodes.size();
  if (!ring.problem.empty()) {
    // Where a link is broken the ring is not to be had, and the link is what is told.
    const bool known = std::any_of(found.findings.begin(), found.findings.end(),
                                   [](const auto& one) { return one.standing == "broken"; });
    if (known) return;
    found.findings.push_back(
        {"ring", "broken", {}, "an all-reduce of all nodes failed: " + ring.problem});
    return;
  }
  std::optional<double> slowest;
  for (std::size_t i = 0; i < count && count > 1; ++i) {
    const auto& rate = found.links[link_index(count, i, (i + 1) % count)].bits_per_second;
    if (!rate) return;
    slowest = std::min(slowest.value_or(*rate), *rate);
  }
  ring.expected_bus_bits_per_second = slowest;
  if (!ring.seconds || !ring.bus_bits_per_second) return;
  if (!ring.sums_right) {
    found.findings.push_back({"ring", "broken", {}, "the sums of an all-reduce are wrong"});
    return;
  }
  constexpr double kRingShare = 0.25;
  const double expected = std::min(slowest.value_or(0), kMostExpectedBits);
  if (share_a_machine(found.nodes) || *ring.bus_bits_per_second >= expected * kRingShare) return;
  found.findings.push_back(
      {"ring",
       "slow",
       {},
       fmt::format("an all-reduce of all nodes gets {}, where each link by itself carries {}: they "
                   "share something on the way",
                   bits_text(*ring.bus_bits_per_second), bits_text(slowest.value_or(0)))});
}

}  // namespace

std::vector<std::vector<PreflightPair>> tournament(std::size_t nodes) {
  if (nodes < 2) return {};
  // The circle: one stays, the others move on by a place; where their number is odd, whoever meets
  // the one that is not there rests.
  const std::size_t places = nodes + nodes % 2;
  std::vector<std::vector<PreflightPair>> rounds(places - 1);
  for (std::size_t round = 0; round + 1 < places; ++round) {
    for (std::size_t i = 0; i < places / 2; ++i) {
      const std::size_t a = i == 0 ? places - 1 : (round + i) % (places - 1);
      const std::size_t b = (round + places - 1 - i) % (places - 1);
      if (a < nodes && b < nodes) rounds[round].emplace_back(std::min(a, b), std::max(a, b));
    }
  }
  return rounds;
}

std::size_t link_index(std::size_t nodes, std::size_t from, std::size_t to) {
  return from * (nodes - 1) + to - (to > from ? 1 : 0);
}

std::vector<PreflightLink> links_of(std::size_t nodes) {
  Links links;
  for (std::size_t from = 0; from < nodes; ++from) {
    for (std::size_t to = 0; to < nodes; ++to) {
      if (from == to) continue;
      PreflightLink& link = links.emplace_back();
      link.from = from;
      link.to = to;
    }
  }
  return links;
}

void judge(Preflight& preflight) {
  preflight.findings.clear();
  const std::optional<double> usual = usual_rate(preflight);
  const std::optional<double> usual_trip = usual_round_trip(preflight.links);
  for (PreflightLink& link : preflight.links) {
    link.expected_bits_per_second = expected_link_bits(preflight, link, usual);
    link.standing = standing_of(link, usual_trip);
  }
  for (const char* const standing : {"broken", "slow", "late"}) {
    Findings{preflight, standing}.add();
  }
  judge_ring(preflight);
  const bool broken =
      std::any_of(preflight.findings.begin(), preflight.findings.end(),
                  [](const PreflightFinding& one) { return one.standing == "broken"; });
  preflight.verdict = broken ? "broken" : preflight.findings.empty() ? "fine" : "slow";
}

}  // namespace mlenv::job
