#pragma once
// The nodes of a job while it is driven: started, met, made ready, lost. For drive.cpp alone.
#include <poll.h>
#include <deque>

#include "runner/job/drive.hpp"

namespace mlenv::job {

/// What ranks tell, whichever their node.
struct RankEvents {
  std::function<void(std::size_t node, std::uint64_t rank, const std::string& run)> started;
  std::function<void(std::size_t node, std::uint64_t rank, const std::string& line)> line;
  std::function<void(std::size_t node, std::uint64_t rank, const RankEnd&)> ended;
  std::function<void(std::size_t node, std::uint64_t rank, const RankUse&)> use{};
  std::function<void(std::size_t node, const std::string& during, const Error&)> failed;
};

class DrivenNodes {
 public:
  DrivenNodes(Store& store, NodeStarter& starter, const DrivePlan& plan, const DriveEvents& events,
              RankEvents ranks);
  DrivenNodes(const DrivenNodes&) = delete;
  DrivenNodes& operator=(const DrivenNodes&) = delete;
  ~DrivenNodes() = default;

  /// Starts agents until as many nodes as the job wants are on their way: those that were lost and
  /// may come back, then others. False when nothing is left to wait for.
  bool advance();
  /// Indexes of those that are ready, at most as many as the job takes.
  std::vector<std::size_t> ready() const;
  /// Throws `no-node` where there are fewer than the job needs.
  void require_enough() const;
  /// A new round: what failed before may be tried again.
  void forgive();
  /// Throws `no-node` where the engine has fewer nodes than the job needs, whatever becomes of
  /// them.
  void require_offers() const;
  void ask_ports(std::size_t node, std::size_t count);
  /// Nothing: it has not answered yet.
  const std::optional<std::vector<std::uint16_t>>& ports(std::size_t node) const {
    return nodes_[node].ports;
  }

  /// What to wait for, appended; then the same, as poll(2) left them, at least once a beat.
  void add_to(std::vector<pollfd>& fds) const;
  void hear(const pollfd* seen);

  NodeLink* link(std::size_t node);  ///< nullptr: it is gone
  const NodeState& state(std::size_t node) const { return nodes_[node].state; }
  std::vector<NodeState> states() const;
  double last_heard(std::size_t node) const;  ///< seconds since 1970, by our clock
  void say_goodbye();
  /// What link tests give (preflight_nodes.hpp), as long as somebody asks for it.
  std::function<void(std::size_t node, const std::string& answer)> on_link_tested;
  bool all_gone() const;
  void drop_all();  ///< at once

 private:
  struct Node {
    NodeState state;
    std::unique_ptr<StartedNode> process{};
    std::unique_ptr<NodeLink> link{};
    bool gone = true;      ///< or was never there
    bool barred = false;   ///< it failed in this round
    bool leaving = false;  ///< it was told good-bye
    std::optional<Error> error{};
    std::optional<std::vector<std::uint16_t>> ports{};
    /// Until then its process may say why it ended; nothing: nobody asks any more.
    std::optional<std::chrono::steady_clock::time_point> last_words_by{};
    std::chrono::steady_clock::time_point began{};
    std::chrono::system_clock::time_point heard{};
  };
  bool is_ready(const Node& node) const;
  void open(std::size_t index);
  NodeEvents events_of(std::size_t index);
  void met(std::size_t index, const NodeHello& hello);
  void lost(Node& node, const std::string& why);
  void tick(Node& node);
  void bury();  ///< links of those that are gone
  void hear_last_words(Node& node);

  Store& store_;
  NodeStarter& starter_;
  const DrivePlan& plan_;
  const DriveEvents& events_;
  RankEvents ranks_;
  std::deque<Node> nodes_;
};

}  // namespace mlenv::job
