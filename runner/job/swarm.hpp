#pragma once
// Who sends which piece of an image to whom. Plain bookkeeping, without a clock or a socket.
//
// The source (the controller) sends each piece to one node, whichever takes it soonest; the others
// fetch it from that node, and soon from each other, the rarest first. So what leaves the source is
// one image, however many nodes there are, every node's link carries about one image in and less
// than one out, and the last piece is everywhere a few pieces' time after it left the source.
// A chain or a tree would be as fast where all links are alike, but whoever stands behind a slow or
// broken link waits with it; here a slow node delays itself alone.
//
// A node that nobody else reaches is sent all by the source.
//
// Where a registry has the image, nodes fetch from it in the source's place: what is said here of
// the source holds for both, and who asks says which of them it is.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <vector>

namespace mlenv::job {

class Swarm {
 public:
  /// Pieces are numbered from 0, in the order in which the source would send them.
  explicit Swarm(std::size_t pieces) : held_(pieces, 0), on_way_(pieces, 0) {}

  /// Nodes are numbered by the caller. One that comes again is a new one: nothing is known of it.
  void join(std::size_t node, const std::vector<bool>& has);
  /// What it fetched from others or had to fetch from it is free again.
  void leave(std::size_t node);
  /// Others may fetch from it.
  void serves(std::size_t node);

  /// True: from another node.
  bool arrived(std::size_t node, std::size_t piece);
  /// It could not get the piece from `from`, and will not be told to again.
  void unreachable(std::size_t node, std::size_t piece, std::size_t from);
  /// What came of these pieces was not what it should be: it has them no more, and is sent
  /// everything by the source from now on.
  void spoilt(std::size_t node, std::size_t first, std::size_t count);

  /// What was on its way to it from the source does not come.
  void dropped(std::size_t node, std::size_t piece);

  /// What the source sends to that node now; nothing: it has, or gets from others, all it can.
  std::optional<std::size_t> next_from_source(std::size_t node);
  /// That piece, too, if it lacks it and gets it from nobody. True: it is on its way.
  bool also_from_source(std::size_t node, std::size_t piece);
  /// The same for a node that has waited too long for what is on its way to others: slow ones, or
  /// ones that may be gone.
  std::optional<std::size_t> next_for_impatient(std::size_t node);
  struct Fetch {
    std::size_t piece = 0;
    std::size_t from = 0;
  };
  /// What that node fetches now. At most kMostFetches are under way to a node, kMostUploads from
  /// one, and kMostOfOne from one to another, so that a slow one does not hold others up.
  std::optional<Fetch> next_fetch(std::size_t node);

  /// It may fetch from the other one.
  bool reaches(std::size_t node, std::size_t other) const {
    return can_fetch(nodes_.at(node), other);
  }
  /// It was given what it should not have, and fetches from no other any more.
  bool is_alone(std::size_t node) const { return nodes_.at(node).source_only; }
  /// Somebody whom it reaches has the piece, or is about to, or it is on its way to it.
  bool comes(std::size_t node, std::size_t piece) const {
    return nodes_[node].pieces[piece] != At::absent || may_come(nodes_[node], piece);
  }
  std::size_t pieces() const { return held_.size(); }
  bool has(std::size_t node, std::size_t piece) const {
    return nodes_[node].pieces[piece] == At::there;
  }
  std::size_t count(std::size_t node) const;  ///< of pieces that it has
  bool whole(std::size_t node) const { return count(node) == held_.size(); }

  static constexpr std::size_t kMostFetches = 6;
  static constexpr std::size_t kMostUploads = 8;
  static constexpr std::size_t kMostOfOne = 3;

 private:
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
  enum class At : std::uint8_t { absent, on_way_from_source, on_way_from_node, there };
  struct Node {
    bool joined = false;
    bool serving = false;
    bool source_only = false;
    std::size_t has = 0;
    std::size_t fetches = 0;
    std::size_t uploads = 0;
    std::vector<At> pieces{};
    std::vector<std::size_t> from{};      ///< of what is on its way from a node
    std::vector<std::size_t> fetching{};  ///< so many from each node
    std::deque<std::size_t> fetchable{};  ///< absent, and some other node has it, or had it
    std::vector<std::size_t> broken{};    ///< nodes that it cannot fetch from
    std::size_t next = 0;                 ///< where to look for what nobody has
  };
  bool can_fetch(const Node& node, std::size_t from) const;
  bool may_come(const Node& node, std::size_t piece) const;
  std::size_t best_holder(const Node& node, std::size_t piece) const;
  void offer(std::size_t piece, std::size_t holder);
  void end_fetch(Node& node, std::size_t piece);
  void lose(Node& node, std::size_t piece);

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> held_;    ///< by so many nodes
  std::vector<std::uint32_t> on_way_;  ///< from the source to so many
  std::minstd_rand random_{1};
};

}  // namespace mlenv::job
