#pragma once
// What a controller asks the link testers of a job's nodes, and what they answer: JSON on a line,
// carried by LinkTest and LinkTested (messages.hpp). The controller asks all nodes of a round at
// once and waits for their answers before it asks for the next.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv::job {

/// A node that listens.
struct LinkPeer {
  std::uint64_t node = 0;
  std::string address;
  std::uint16_t port = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("address", self.address);
    visit("port", self.port);
  }
};

inline constexpr std::string_view kLinkOpen = "open";
inline constexpr std::string_view kLinkReach = "reach";
inline constexpr std::string_view kLinkPair = "pair";
inline constexpr std::string_view kLinkRing = "ring";

/// `open`: listen at `address`, for those who know the token. `reach`: connect to each of `peers`.
/// `pair`: with peers[0], as the one that connects or the one that waits (`calls`): round trips,
/// then bytes for `span_ms` each way. `ring`: `times` all-reduces of `bytes` with all others, of
/// which peers[0] is the next and peers[1] the one before.
struct LinkRequest {
  std::string what;
  std::uint64_t round = 0;  ///< a number of its own; connections name it
  std::uint64_t self = 0;   ///< this node's number
  std::string token;        ///< of `open`
  std::string address;      ///< of `open`
  std::vector<LinkPeer> peers;
  bool calls = false;
  std::uint64_t span_ms = 0;
  std::uint64_t limit_ms = 0;  ///< it answers within that, whatever happens
  std::uint64_t nodes = 0;     ///< of `ring`: how many
  std::uint64_t bytes = 0;
  std::uint64_t times = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("what", self.what);
    visit("round", self.round);
    visit("self", self.self);
    visit("token", self.token);
    visit("address", self.address);
    visit("peers", self.peers);
    visit("calls", self.calls);
    visit("span_ms", self.span_ms);
    visit("limit_ms", self.limit_ms);
    visit("nodes", self.nodes);
    visit("bytes", self.bytes);
    visit("times", self.times);
  }
};

// How a node was reached.
inline constexpr std::string_view kReached = "reached";
inline constexpr std::string_view kRefused = "refused";          ///< a reset, or ICMP says so
inline constexpr std::string_view kSilent = "silent";            ///< nothing came back in time
inline constexpr std::string_view kUnreachable = "unreachable";  ///< no way there
inline constexpr std::string_view kStranger = "stranger";        ///< somebody else answered

inline constexpr std::string_view kNodeFailed = "failed";  ///< a node cannot measure, or is gone

struct LinkReached {
  std::uint64_t node = 0;
  std::string how;
  std::string said;  ///< the kernel's words, where it failed
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("how", self.how);
    visit("said", self.said);
  }
};

struct LinkAnswer {
  std::string what;
  std::uint64_t round = 0;
  std::string problem;  ///< why something of it is not there; empty: nothing is amiss
  std::uint16_t port = 0;
  std::vector<LinkReached> reached;
  std::optional<double> round_trip_seconds;  ///< the least of many
  std::optional<double> bits_per_second;     ///< that came here from the other
  std::vector<double> ring_seconds;          ///< of each all-reduce
  bool sums_right = false;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("what", self.what);
    visit("round", self.round);
    visit("problem", self.problem);
    visit("port", self.port);
    visit("reached", self.reached);
    visit("round_trip_seconds", self.round_trip_seconds);
    visit("bits_per_second", self.bits_per_second);
    visit("ring_seconds", self.ring_seconds);
    visit("sums_right", self.sums_right);
  }
};

/// On one line, without the newline.
std::string render_link_request(const LinkRequest& request);
std::string render_link_answer(const LinkAnswer& answer);
/// Throw `bad-stream` for what is none.
LinkRequest parse_link_request(std::string_view text);
LinkAnswer parse_link_answer(std::string_view text);

}  // namespace mlenv::job
