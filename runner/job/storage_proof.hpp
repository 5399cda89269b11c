#pragma once
// That storage which has a name is there on each node of a job, and is the same on all of them. Of
// a job's nodes one, the first, leaves a file of a random name in each place that is written, which
// the others must see; a place that is only read is compared by what the nodes tell of it, since
// nothing is written there. Folders that happen to have the same path are what this is to catch.
//
// Nodes that come later prove it against one that has proven it. Where the first of several nodes
// is the one that none of the others agrees with, it is the one that is refused.
//
// Plain: asks through `Talk`, hears answers, and is told the time. Nothing in it waits. A node that
// says nothing for a minute has a file system that does not answer, and is refused.
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runner/job/storage_test.hpp"

namespace mlenv::job {

/// How it is known that a node has the same storage as the others.
inline constexpr std::string_view kByMarker = "marker";      ///< it saw what another one left
inline constexpr std::string_view kByDevice = "device";      ///< one kernel, one folder
inline constexpr std::string_view kByCompared = "compared";  ///< one type, inode, time of change
inline constexpr std::string_view kUnproven = "unproven";    ///< that tells nothing here
inline constexpr std::string_view kAlone = "alone";          ///< there was no other node

struct StorageProven {
  StorageUse use;
  std::string type;  ///< of its file system
  std::string how;   ///< one of the above
  friend bool operator==(const StorageProven&, const StorageProven&) = default;
};

/// Two nodes' sights of a place that is only read; nullopt: they are of different storage.
/// `one_kernel`: both nodes have the same.
std::optional<std::string_view> compared(const StorageSight& one, const StorageSight& other,
                                         bool one_kernel);

class StorageProof {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Talk {
    /// To the tester of a node; an empty text: it is needed no more.
    std::function<void(std::size_t node, const std::string& request)> ask;
    /// Anew when more is known of it.
    std::function<void(std::size_t node, const std::vector<StorageProven>&)> proven;
    /// `no-storage`, `storage-differs`.
    std::function<void(std::size_t node, const Error&)> failed;
  };

  StorageProof(std::vector<StorageUse> places, Talk talk)
      : places_(std::move(places)), talk_(std::move(talk)) {}

  /// `machine`: the same for nodes of one kernel.
  void met(std::size_t node, const std::string& name, const std::string& machine, Time now);
  /// An answer as it came; empty: the node's tester has ended.
  void heard(std::size_t node, const std::string& answer, Time now);
  void lost(std::size_t node, Time now);
  /// Now and then. `others_come`: nodes are on their way that were not met yet; the first is
  /// waited for no longer than some seconds.
  void tick(Time now, bool others_come);

 private:
  enum class Step { looks, waits, leaves, finds, found, removes, done };
  struct Node {
    std::string name;
    std::string machine;
    Step step = Step::looks;
    Time since{};  ///< of this step
    bool proven = false;
    std::vector<StorageSight> sights{};
    std::vector<bool> seen{};  ///< of the places, the marker of this round
  };
  struct Round {
    std::uint64_t number = 0;
    std::size_t first = 0;  ///< the node that others are held against
    std::string marker;     ///< empty: there is none
  };
  struct News {
    std::size_t node = 0;
    std::optional<Error> error{};  ///< nothing: it is proven
    std::vector<StorageProven> proven{};
  };

  using Nodes = std::map<std::size_t, Node>;
  void ask(std::size_t node, Step step, std::string_view what, Time now);
  void looked(std::size_t node, const StorageAnswer& answer, Time now);
  void left(const StorageAnswer& answer, Time now);
  void ended(std::size_t node, const std::string& why, Time now);
  void fail(std::size_t node, Error error);
  void advance(Time now, bool others_come);
  void begin(Time now, bool others_come);
  void find_it(Time now);
  void first_cannot(Error error, Time now);
  void conclude(Time now);
  void take_back();
  void done(std::size_t node, std::vector<StorageProven> proven);
  std::optional<std::string_view> how(const Node& first, const Node& node, std::size_t place) const;
  std::optional<std::vector<StorageProven>> agreed(const Node& first, const Node& node) const;
  /// `first_is_wrong`: it is the one that is refused.
  Error differs(const Node& first, const Node& node, bool first_is_wrong) const;
  bool any(Step step) const;
  void tell();

  std::vector<StorageUse> places_;
  Talk talk_;
  Nodes nodes_;
  std::optional<Round> round_;
  std::uint64_t rounds_ = 0;
  std::vector<News> news_;
};

}  // namespace mlenv::job
