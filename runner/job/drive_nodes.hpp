#pragma once
// The nodes of a job while it is driven: started, met, made ready, lost. For drive.cpp and
// copy_image.cpp alone.
#include <poll.h>
#include <deque>

#include "runner/job/beater.hpp"
#include "runner/job/data_lists.hpp"
#include "runner/job/data_notices.hpp"
#include "runner/job/drive.hpp"
#include "runner/job/elastic.hpp"
#include "runner/job/image_spread.hpp"
#include "runner/job/patience.hpp"

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
  /// Starts agents on nodes that are gone and whose time has come (BackOff), of those that are
  /// wanted, as long as there are fewer than the job takes. False when none of the wanted can come
  /// any more.
  bool look_for(const std::function<bool(std::size_t)>& wanted);
  /// It is there, or may be there again.
  bool may_come(std::size_t node) const { return may_come(nodes_[node]); }
  /// Were it lost now, it might be there again.
  bool comes_again(std::size_t node) const {
    return !nodes_[node].refused && starter_.may_come_back();
  }
  /// It is let go, and not asked again.
  void refuse(std::size_t node, const Error& why);
  /// It is lost, not asked again, and nobody waits for its end.
  void give_up(std::size_t node, const std::string& why);
  bool is_ready(std::size_t node) const { return is_ready(nodes_[node]); }
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

  /// Tells of nodes that are on their way and for which nothing seems to happen: what each waits
  /// for, after 15 s, and again every minute.
  void say_who_waits();

  /// What to wait for, appended; then the same, as poll(2) left them, at least once a beat.
  void add_to(std::vector<pollfd>& fds) const;
  void hear(const pollfd* seen);

  NodeLink* link(std::size_t node);  ///< nullptr: it is gone
  const NodeState& state(std::size_t node) const { return nodes_[node].state; }
  std::vector<NodeState> states() const;  ///< of all that were ever met
  std::vector<NodeState> ready_states() const;
  std::size_t count() const { return nodes_.size(); }
  bool gone(std::size_t node) const { return nodes_[node].gone; }
  const std::optional<Error>& error(std::size_t node) const { return nodes_[node].error; }
  const SpreadCount& image_count(std::size_t node) { return spread_.count(node); }
  double last_heard(std::size_t node) const;  ///< seconds since 1970, by our clock
  void say_goodbye();
  /// What link tests give (preflight_nodes.hpp), as long as somebody asks for it.
  std::function<void(std::size_t node, const std::string& answer)> on_link_tested;
  bool all_gone() const;
  void drop_unmet();  ///< those whose agents have not said a word: at once
  void drop_all();    ///< at once

 private:
  struct Node {
    std::size_t index = 0;
    NodeState state{};
    std::unique_ptr<StartedNode> process{};
    std::unique_ptr<NodeLink> link{};
    bool gone = true;      ///< or was never there
    bool barred = false;   ///< it failed in this round
    bool refused = false;  ///< it is not asked again
    BackOff back_off{};
    bool leaving = false;  ///< it was told good-bye
    bool given_up = false;
    std::optional<Error> error{};
    std::optional<std::vector<std::uint16_t>> ports{};
    /// Until then its process may say why it ended; nothing: nobody asks any more.
    std::optional<std::chrono::steady_clock::time_point> last_words_by{};
    std::chrono::steady_clock::time_point began{};  ///< or its program last came on
    std::uint64_t program_sent = 0;
    std::optional<std::chrono::steady_clock::time_point> told_sent{};
    DataNotice data_notice{};
    std::chrono::system_clock::time_point heard{};
    Patience patience{};
  };
  SpreadEvents spread_events();
  StorageProof::Talk storage_talk();
  void storage_failed(Node& node, const Error& error);
  bool any_unmet() const;
  bool is_ready(const Node& node) const;
  void drop(Node& node);
  bool may_come(const Node& node) const {
    return !node.refused && (!node.state.lost || starter_.may_come_back());
  }
  void open(std::size_t index);
  NodeEvents events_of(std::size_t index);
  void met(std::size_t index, const NodeHello& hello);
  std::string address_of(const NodeState& state) const;
  void lost(Node& node, const std::string& why);
  void tick(Node& node);
  void look_at_program(Node& node);
  struct Awaited {
    std::string key;
    std::string text;
  };
  std::string image_awaited(const Node& node);
  Awaited awaited(const Node& node);
  void bury();  ///< links of those that are gone
  void hear_last_words(Node& node);

  Store& store_;
  NodeStarter& starter_;
  const DrivePlan& plan_;
  const DriveEvents& events_;
  RankEvents ranks_;
  DataLists data_lists_;
  Beater beater_;
  std::deque<Node> nodes_;
  ImageSpread spread_;
  StorageProof storage_;
};

}  // namespace mlenv::job
