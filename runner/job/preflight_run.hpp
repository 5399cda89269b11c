#pragma once
// A preflight from its first request to its verdict: each node listens, each connects to all
// others, pairs are measured in rounds in which no node is in two pairs, what seemed slow or late
// is measured again by itself, and all nodes together sum a vector around a ring. Requests out,
// answers in, nothing waited for: the owner polls.
//
// It is bounded. Of N nodes: the rounds are N-1 (N where that is odd), each of at most 0.2 s of
// round trips and two streams, which last 0.3 s for up to 20 nodes and less for more, down to 0.06
// s: all streams together some 12 s. After 30 s no further round begins; what is repeated takes 8 s
// at most, the all-reduce 15 s.
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runner/job/link_test.hpp"
#include "runner/job/preflight.hpp"

namespace mlenv::job {

class PreflightRun {
 public:
  using Clock = std::chrono::steady_clock;
  using Say = std::function<void(std::size_t node, const LinkRequest&)>;

  /// `token`: what lets the nodes know each other; of hex digits, and nobody else's.
  PreflightRun(std::vector<PreflightNode> nodes, std::string token, Say say);
  PreflightRun(const PreflightRun&) = delete;
  PreflightRun& operator=(const PreflightRun&) = delete;
  ~PreflightRun() = default;

  /// An answer as it came. Those of earlier rounds, or of nobody who was asked, are not heeded.
  void heard(std::size_t node, const std::string& answer);
  void lost(std::size_t node, const std::string& why);
  /// Now and then.
  void tick();
  bool over() const { return phase_ == Phase::over; }
  /// Of one that is over: judged.
  const Preflight& result() const { return found_; }

 private:
  enum class Phase { open, reach, pairs, again, ring, over };
  struct Node {
    std::uint16_t port = 0;
    std::string failed{};  ///< why it takes no part
  };

  bool usable(std::size_t node) const { return nodes_[node].failed.empty(); }
  void fail(std::size_t node, const std::string& why);
  LinkRequest request(std::size_t self, std::string_view what) const;
  void ask(std::size_t node, const LinkRequest& request);
  void begin(std::chrono::milliseconds limit);
  void take(std::size_t node, const LinkAnswer& answer);
  void take_pair(std::size_t node, const LinkAnswer& answer);
  void take_ring(const LinkAnswer& answer);
  void advance();
  void ask_open();
  void ask_reach();
  bool ask_pairs(const std::vector<PreflightPair>& pairs);
  bool ask_pair(PreflightPair pair);
  void choose_again();
  bool ask_ring();
  void finish_ring();
  void finish();
  LinkPeer peer(std::size_t node) const;
  PreflightLink& link(std::size_t from, std::size_t to);

  Preflight found_;
  std::string token_;
  Say say_;
  std::vector<Node> nodes_;
  Phase phase_ = Phase::open;
  std::uint64_t round_ = 0;
  std::set<std::size_t> waiting_;  ///< nodes whose answer is due
  Clock::time_point due_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point phase_until_;
  std::chrono::milliseconds span_{300};
  std::vector<std::vector<PreflightPair>> rounds_;  ///< still to come, the last one first
  std::vector<std::size_t> partner_;                ///< in this round
  std::vector<std::vector<double>> ring_seconds_;
  bool ring_right_ = true;
};

}  // namespace mlenv::job
