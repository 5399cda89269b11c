#include "runner/job/preflight_run.hpp"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"

namespace mlenv::job {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReach{3'000};  ///< until somebody who is silent is given up
constexpr milliseconds kOpen{10'000};  ///< until a node has a process that measures
constexpr milliseconds kSlack{5'000};  ///< from a node's own limit until its answer is here
constexpr milliseconds kAllStreams{12'000};
constexpr milliseconds kMostPairs{30'000};
constexpr milliseconds kMostAgain{8'000};
constexpr milliseconds kMostRingTime{15'000};
constexpr std::size_t kNoPartner = SIZE_MAX;

milliseconds span_for(std::size_t rounds) {
  constexpr milliseconds kLeast{60};
  constexpr milliseconds kMost{300};
  if (rounds == 0) return kMost;
  return std::clamp(kAllStreams / (2 * static_cast<milliseconds::rep>(rounds)), kLeast, kMost);
}

std::uint64_t whole_milliseconds(milliseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

/// Both streams, the round trips, and connections that have to be made.
milliseconds pair_limit(milliseconds span) {
  constexpr int kStreams = 3;
  return kReach + kStreams * span;
}

/// So large that it takes about a third of a second.
std::uint64_t ring_bytes(std::size_t nodes, double bits_per_second) {
  constexpr double kSeconds = 0.3;
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
  constexpr std::uint64_t kMost = std::uint64_t{16} << 20;
  const double share = 2.0 * static_cast<double>(nodes - 1) / static_cast<double>(nodes);
  const double bytes = bits_per_second * kSeconds / kByteBits / share;
  const auto whole = static_cast<std::uint64_t>(std::clamp(bytes, 1.0, 1e9));
  return std::clamp(std::bit_floor(whole), kLeast, kMost);
}

}  // namespace

PreflightRun::PreflightRun(std::vector<PreflightNode> nodes, std::string token, Say say)
    : token_(std::move(token)), say_(std::move(say)), nodes_(nodes.size()) {
  found_.links = links_of(nodes.size());
  found_.nodes = std::move(nodes);
  ask_open();
}

PreflightLink& PreflightRun::link(std::size_t from, std::size_t to) {
  return found_.links[link_index(nodes_.size(), from, to)];
}

LinkPeer PreflightRun::peer(std::size_t node) const {
  return {node, found_.nodes[node].address, nodes_[node].port};
}

LinkRequest PreflightRun::request(std::size_t self, std::string_view what) const {
  LinkRequest made;
  made.what = what;
  made.round = round_;
  made.self = self;
  return made;
}

void PreflightRun::begin(milliseconds limit) {
  ++round_;
  waiting_.clear();
  due_ = Clock::now() + limit + kSlack;
}

void PreflightRun::ask(std::size_t node, const LinkRequest& request) {
  waiting_.insert(node);
  say_(node, request);
}

void PreflightRun::heard(std::size_t node, const std::string& answer) {
  if (node >= nodes_.size() || !waiting_.contains(node)) return;
  if (answer.empty()) return lost(node, "what measures there has ended");
  try {
    const LinkAnswer read = parse_link_answer(answer);
    if (read.round != round_) return;
    waiting_.erase(node);
    take(node, read);
  } catch (const Error& error) {
    return lost(node, printable(error.frames().back()));
  }
  if (waiting_.empty()) advance();
}

void PreflightRun::lost(std::size_t node, const std::string& why) {
  if (node >= nodes_.size() || over() || !usable(node)) return;
  fail(node, why);
  if (waiting_.erase(node) > 0 && waiting_.empty()) advance();
}

void PreflightRun::tick() {
  while (!over() && (waiting_.empty() || Clock::now() >= due_)) {
    for (const std::size_t node : waiting_) fail(node, "its agent did not answer in time");
    waiting_.clear();
    advance();
  }
}

void PreflightRun::fail(std::size_t node, const std::string& why) {
  nodes_[node].failed = fmt::format("{}: {}", found_.nodes[node].name, why);
  for (PreflightLink& one : found_.links) {
    if ((one.from != node && one.to != node) || one.bits_per_second) continue;
    one.reached = kNodeFailed;
    one.said = nodes_[node].failed;
  }
}

// --- what is asked ---------------------------------------------------------------------------

void PreflightRun::ask_open() {
  begin(kOpen);
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    LinkRequest open = request(node, kLinkOpen);
    open.token = token_;
    open.address = found_.nodes[node].address;
    ask(node, open);
  }
}

void PreflightRun::ask_reach() {
  begin(kReach);
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!usable(node)) continue;
    LinkRequest reach = request(node, kLinkReach);
    reach.limit_ms = whole_milliseconds(kReach);
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      if (other != node && usable(other)) reach.peers.push_back(peer(other));
    }
    ask(node, reach);
  }
}

/// False: nothing connects them.
bool PreflightRun::ask_pair(PreflightPair pair) {
  auto [caller, other] = pair;
  if (!usable(caller) || !usable(other)) return false;
  if (link(caller, other).reached != kReached) std::swap(caller, other);
  if (link(caller, other).reached != kReached) return false;
  partner_[caller] = other;
  partner_[other] = caller;
  for (const std::size_t node : {caller, other}) {
    LinkRequest asked = request(node, kLinkPair);
    asked.calls = node == caller;
    asked.peers = {peer(partner_[node])};
    asked.span_ms = whole_milliseconds(span_);
    asked.limit_ms = whole_milliseconds(pair_limit(span_));
    ask(node, asked);
  }
  return true;
}

bool PreflightRun::ask_pairs(const std::vector<PreflightPair>& pairs) {
  begin(pair_limit(span_));
  partner_.assign(nodes_.size(), kNoPartner);
  bool any = false;
  for (const PreflightPair& pair : pairs) any = ask_pair(pair) || any;
  return any;
}

/// Those that are worst, as many as there is time for: what else went on may have been the cause.
void PreflightRun::choose_again() {
  constexpr std::size_t kMost = 8;
  judge(found_);
  std::vector<std::pair<double, PreflightPair>> chosen;
  for (std::size_t a = 0; a < nodes_.size(); ++a) {
    for (std::size_t b = a + 1; b < nodes_.size(); ++b) {
      double worst = 1;
      for (const PreflightLink* one : {&link(a, b), &link(b, a)}) {
        if (one->standing != "slow" && one->standing != "late") continue;
        worst = std::min(worst, one->bits_per_second.value_or(0) /
                                    std::max(1.0, one->expected_bits_per_second.value_or(1)));
        worst = std::min(worst, kSlowShare);
      }
      if (worst < 1) chosen.push_back({worst, {a, b}});
    }
  }
  std::sort(chosen.begin(), chosen.end());
  if (chosen.size() > kMost) chosen.resize(kMost);
  rounds_.clear();
  for (const auto& one : chosen) rounds_.push_back({one.second});
  std::reverse(rounds_.begin(), rounds_.end());
}

bool PreflightRun::ask_ring() {
  const std::size_t count = nodes_.size();
  constexpr double kUnknownRate = 100e6;
  constexpr std::uint64_t kTimes = 3;
  std::optional<double> slowest;
  if (count < 2) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const PreflightLink& one = link(i, (i + 1) % count);
    if (one.reached != kReached || !usable(i) || (!one.bits_per_second && !one.said.empty())) {
      found_.ring.problem = fmt::format("{} does not reach {}", found_.nodes[i].name,
                                        found_.nodes[(i + 1) % count].name);
      return false;
    }
    const double rate = one.bits_per_second.value_or(kUnknownRate);
    slowest = std::min(slowest.value_or(rate), rate);
  }
  found_.ring.bytes = ring_bytes(count, *slowest);
  begin(kMostRingTime);
  for (std::size_t node = 0; node < count; ++node) {
    LinkRequest ring = request(node, kLinkRing);
    ring.nodes = count;
    ring.peers = {peer((node + 1) % count), peer((node + count - 1) % count)};
    ring.bytes = found_.ring.bytes;
    ring.times = kTimes;
    ring.limit_ms = whole_milliseconds(kMostRingTime);
    ask(node, ring);
  }
  return true;
}

// --- what is heard ---------------------------------------------------------------------------

void PreflightRun::take(std::size_t node, const LinkAnswer& answer) {
  switch (phase_) {
    case Phase::open:
      nodes_[node].port = answer.port;
      if (!answer.problem.empty() || answer.port == 0) fail(node, printable(answer.problem));
      return;
    case Phase::reach:
      for (const LinkReached& one : answer.reached) {
        if (one.node >= nodes_.size() || one.node == node) continue;
        link(node, one.node).reached = printable(one.how);
        link(node, one.node).said = printable(one.said);
      }
      return;
    case Phase::pairs:
    case Phase::again:
      return take_pair(node, answer);
    case Phase::ring:
      return take_ring(answer);
    case Phase::over:
      return;
  }
}

/// The better of two measurements is the link's: what disturbs makes it slower and later.
void PreflightRun::take_pair(std::size_t node, const LinkAnswer& answer) {
  const std::size_t other = partner_[node];
  if (other == kNoPartner) return;
  PreflightLink& to_here = link(other, node);
  if (answer.bits_per_second) {
    to_here.bits_per_second =
        std::max(to_here.bits_per_second.value_or(0), *answer.bits_per_second);
    if (to_here.reached == kReached) to_here.said.clear();
  } else if (!to_here.bits_per_second && to_here.reached == kReached) {
    to_here.said = answer.problem.empty() ? "nothing came" : printable(answer.problem);
  }
  if (!answer.round_trip_seconds) return;
  for (PreflightLink* const one : {&to_here, &link(node, other)}) {
    one->round_trip_seconds = std::min(one->round_trip_seconds.value_or(*answer.round_trip_seconds),
                                       *answer.round_trip_seconds);
  }
}

void PreflightRun::take_ring(const LinkAnswer& answer) {
  if (!answer.problem.empty() && found_.ring.problem.empty()) {
    found_.ring.problem = printable(answer.problem);
  }
  ring_seconds_.push_back(answer.ring_seconds);
  ring_right_ = ring_right_ && answer.sums_right;
}

/// Each all-reduce is as long as its slowest node says.
void PreflightRun::finish_ring() {
  PreflightRing& ring = found_.ring;
  if (!ring.problem.empty() || ring_seconds_.size() < nodes_.size()) {
    if (ring.problem.empty()) ring.problem = "a node did not answer";
    return;
  }
  std::vector<double> longest;
  for (const std::vector<double>& one : ring_seconds_) {
    longest.resize(std::max(longest.size(), one.size()));
    for (std::size_t i = 0; i < one.size(); ++i) longest[i] = std::max(longest[i], one[i]);
  }
  if (longest.empty()) return;
  std::sort(longest.begin(), longest.end());
  ring.seconds = longest[longest.size() / 2];
  ring.sums_right = ring_right_;
  const auto count = static_cast<double>(nodes_.size());
  ring.bus_bits_per_second = 2 * (count - 1) / count * static_cast<double>(ring.bytes) * kByteBits /
                             std::max(*ring.seconds, 1e-9);
}

// --- one thing after the other ---------------------------------------------------------------

void PreflightRun::advance() {
  const bool in_time = Clock::now() < phase_until_;
  switch (phase_) {
    case Phase::open:
      phase_ = Phase::reach;
      return ask_reach();
    case Phase::reach:
      phase_ = Phase::pairs;
      phase_until_ = Clock::now() + kMostPairs;
      rounds_ = tournament(nodes_.size());
      found_.method.rounds = rounds_.size();
      span_ = span_for(rounds_.size());
      found_.method.seconds_each_way = std::chrono::duration<double>(span_).count();
      std::reverse(rounds_.begin(), rounds_.end());
      return;  // tick() goes on
    case Phase::pairs:
    case Phase::again:
      while (in_time && !rounds_.empty()) {
        const std::vector<PreflightPair> pairs = std::move(rounds_.back());
        rounds_.pop_back();
        if (!ask_pairs(pairs)) continue;
        if (phase_ == Phase::again) ++found_.method.repeated;
        return;
      }
      if (phase_ == Phase::pairs) {
        choose_again();
        phase_ = Phase::again;
        phase_until_ = Clock::now() + kMostAgain;
        return;
      }
      phase_ = Phase::ring;
      if (!ask_ring()) finish();
      return;
    case Phase::ring:
      finish_ring();
      return finish();
    case Phase::over:
      return;
  }
}

void PreflightRun::finish() {
  phase_ = Phase::over;
  waiting_.clear();
  judge(found_);
  found_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
}

}  // namespace mlenv::job
