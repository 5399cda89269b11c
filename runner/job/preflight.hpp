#pragma once
// What a preflight found of the links between a job's nodes, and what that means. Pure: measured
// values in, findings out. How they are measured: preflight_run.hpp.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlenv::job {

struct PreflightNode {
  std::string name;
  std::string address;
  std::string interface;
  /// Of the interface, as its driver says; nothing: not known, or it is no physical one.
  std::optional<double> speed_bits_per_second;
  std::string boot_id{};  ///< nodes with the same one share a machine
  /// Of all active InfiniBand and RoCE ports together; nothing: there is none, or it is not known.
  std::optional<double> rdma_bits_per_second{};
  friend bool operator==(const PreflightNode&, const PreflightNode&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("address", self.address);
    visit("interface", self.interface);
    visit("speed_bits_per_second", self.speed_bits_per_second);
    visit("rdma_bits_per_second", self.rdma_bits_per_second);
  }
};

/// From one node to another.
struct PreflightLink {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::string reached;  ///< link_test.hpp; empty: it was not tried
  std::string said;     ///< why not, or why something was not measured
  std::optional<double> round_trip_seconds;
  std::optional<double> bits_per_second;
  std::optional<double> expected_bits_per_second;  ///< what it is judged by
  std::string standing = "unmeasured";             ///< `fine`, `slow`, `late`, `broken`
  friend bool operator==(const PreflightLink&, const PreflightLink&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("from", self.from);
    visit("to", self.to);
    visit("reached", self.reached);
    visit("said", self.said);
    visit("round_trip_seconds", self.round_trip_seconds);
    visit("bits_per_second", self.bits_per_second);
    visit("expected_bits_per_second", self.expected_bits_per_second);
    visit("standing", self.standing);
  }
};

struct PreflightRing {
  std::uint64_t bytes = 0;                             ///< of the vector that is summed
  std::optional<double> seconds;                       ///< the median; nothing: it was not measured
  std::optional<double> bus_bits_per_second;           ///< 2(N-1)/N × bytes / seconds
  std::optional<double> expected_bus_bits_per_second;  ///< of the slowest link on the way around
  bool sums_right = false;
  std::string problem;  ///< empty: none
  friend bool operator==(const PreflightRing&, const PreflightRing&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("bytes", self.bytes);
    visit("seconds", self.seconds);
    visit("bus_bits_per_second", self.bus_bits_per_second);
    visit("expected_bus_bits_per_second", self.expected_bus_bits_per_second);
    visit("sums_right", self.sums_right);
    visit("problem", self.problem);
  }
};

/// NCCL's all-reduce over the GPUs of all nodes (nccl_ring.hpp).
struct PreflightNccl {
  std::string version;            ///< `2.28.3`; empty: it did not come to that
  std::string network;            ///< as NCCL calls it: `IB`, `Socket`; empty: it did not say
  std::uint64_t gpus = 0;         ///< of all nodes
  std::uint64_t bytes = 0;        ///< of each GPU
  std::optional<double> seconds;  ///< the shortest of a few; nothing: it was not measured
  std::optional<double> bus_bits_per_second;           ///< 2(n-1)/n × bytes / seconds, of n GPUs
  std::optional<double> expected_bus_bits_per_second;  ///< what it is judged by
  bool failed = false;  ///< else, without `seconds`, there was nothing to measure
  std::string problem;  ///< why it was not measured; empty: it was
  friend bool operator==(const PreflightNccl&, const PreflightNccl&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("version", self.version);
    visit("network", self.network);
    visit("gpus", self.gpus);
    visit("bytes", self.bytes);
    visit("seconds", self.seconds);
    visit("bus_bits_per_second", self.bus_bits_per_second);
    visit("expected_bus_bits_per_second", self.expected_bus_bits_per_second);
    visit("failed", self.failed);
    visit("problem", self.problem);
  }
};

/// How it was measured.
struct PreflightMethod {
  std::uint64_t rounds = 0;     ///< of pairs, no node in two at a time
  std::uint64_t streams = 1;    ///< of TCP in each pair
  double seconds_each_way = 0;  ///< of each stream
  std::uint64_t repeated = 0;   ///< pairs that were measured again, alone
  friend bool operator==(const PreflightMethod&, const PreflightMethod&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rounds", self.rounds);
    visit("streams", self.streams);
    visit("seconds_each_way", self.seconds_each_way);
    visit("repeated", self.repeated);
  }
};

struct PreflightFinding {
  std::string kind;      ///< `node`, `link`, `all`, `ring`, `nccl`
  std::string standing;  ///< `broken`, `slow`, `late`
  std::vector<std::uint64_t> nodes;
  std::string text;  ///< a sentence
  friend bool operator==(const PreflightFinding&, const PreflightFinding&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("kind", self.kind);
    visit("standing", self.standing);
    visit("nodes", self.nodes);
    visit("text", self.text);
  }
};

struct Preflight {
  std::vector<PreflightNode> nodes;
  std::vector<PreflightLink> links;  ///< both ways of each pair, by `from`, then `to`
  PreflightRing ring;
  std::string nccl = "not measured: `mlenv preflight --nccl IMAGE` does";  ///< a sentence
  std::optional<PreflightNccl> nccl_all_reduce{};  ///< nothing: it was not asked for
  PreflightMethod method;
  std::vector<PreflightFinding> findings;  ///< what is broken first
  std::string verdict = "fine";            ///< `slow`: something is slow or late; `broken`
  double seconds = 0;                      ///< that it took
  friend bool operator==(const Preflight&, const Preflight&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("nodes", self.nodes);
    visit("links", self.links);
    visit("ring", self.ring);
    visit("nccl", self.nccl);
    visit("nccl_all_reduce", self.nccl_all_reduce);
    visit("method", self.method);
    visit("findings", self.findings);
    visit("verdict", self.verdict);
    visit("seconds", self.seconds);
  }
};

/// All pairs of so many nodes, in rounds in which no node is in two of them (a round-robin
/// tournament): N-1 rounds where N is even, else N.
using PreflightPair = std::pair<std::size_t, std::size_t>;
std::vector<std::vector<PreflightPair>> tournament(std::size_t nodes);

/// Both ways of all pairs, unmeasured.
std::vector<PreflightLink> links_of(std::size_t nodes);
/// Of links as links_of makes them.
std::size_t link_index(std::size_t nodes, std::size_t from, std::size_t to);

/// A link is slow that carries less than half of what is expected: what the slower of its two
/// interfaces can carry, by its driver, else what the middle node gets on its best link. More than
/// 10 Gbit/s is not expected: one stream of TCP does not tell faster links apart; nor more than
/// 1 Gbit/s between nodes that one machine plays, where its processors are what is measured. Late
/// is one whose round trip is more than four times the median's, and 1 ms more.
inline constexpr double kSlowShare = 0.5;
inline constexpr double kMostExpectedBits = 10e9;
inline constexpr double kMostExpectedWithin = 1e9;
/// Of a link's speed, what is left for data: Ethernet's, IP's and TCP's own bytes.
inline constexpr double kPayloadShare = 0.94;
inline constexpr double kLateTimes = 4;
inline constexpr double kLateSeconds = 0.001;

/// Fills in `expected_…` and `standing` of the links, the findings, and the verdict. Where all that
/// a node sends or receives is slow it is the node that is named, else the link.
void judge(Preflight& preflight);

/// mlenv.preflight/1, on one line.
std::string render_preflight(const Preflight& preflight);
/// The other way. Throws `bad-facts` (usage); `shown` names the text.
Preflight parse_preflight(std::string_view text, std::string_view shown);
/// For people: a row for each node, the links of few nodes, the all-reduce, what was found.
std::vector<std::string> preflight_text(const Preflight& found);
/// A sentence for each finding, and one of what there is.
std::vector<std::string> preflight_notes(const Preflight& found);
std::string preflight_summary(const Preflight& found);
/// `941 Mbit/s`, `9.4 Gbit/s`, as a person reads it; two digits at least.
std::string bits_text(double bits_per_second);

}  // namespace mlenv::job
