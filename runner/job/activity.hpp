#pragma once
// Whether the ranks of an attempt still do anything, and whether one node holds the others up. Pure
// but for what it is told: lines, and what nodes say of their ranks' use of processors (RankUse),
// each with the time.
//
// A rank shows a sign of life by a line, or by more than 2 % of a processor between two reports.
// The job is stalled once no rank that goes on has shown any for a while. Ranks that spin while
// they wait (NCCL's do) are not idle by that measure: what waits so is found by the framework's own
// time-outs.
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runner/job/node_link.hpp"

namespace mlenv::job {

inline constexpr double kIdleCpus = 0.02;
/// A straggler is told once it has been one for so long.
inline constexpr std::chrono::seconds kStragglerSpan{20};
/// Its ranks wait for a processor so much of the time, and those of all other nodes at most a third
/// of that.
inline constexpr double kQueuedShare = 0.25;
/// Or its ranks compute all the time, and those of each other node less than half of it.
inline constexpr double kBusyShare = 0.8;

/// A stall is told after so long, or after half of the time after which the job has failed by it.
inline constexpr std::chrono::seconds kStallTold{60};

struct ActivityRules {
  std::optional<std::chrono::milliseconds> stall_timeout;
  bool synchronous = false;  ///< ranks are equals that wait for each other at each step
};

struct Stall {
  std::uint64_t rank = 0;  ///< the one that most likely holds the others up
  std::string why;         ///< `stalled: …`: since when, and what each waits for
};

class Activity {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct RankOn {
    std::uint64_t rank = 0;
    std::string node;
  };
  explicit Activity(const ActivityRules& rules) : rules_(rules) {}
  /// A new attempt.
  void begin(const std::vector<RankOn>& ranks, Time now);
  void line(std::uint64_t rank, Time now);
  void use(std::uint64_t rank, const RankUse& use, Time now);
  void over(std::uint64_t rank);
  /// Nobody listened to the ranks for so long, up to now: that is no silence of theirs.
  void not_heard_for(std::chrono::steady_clock::duration span);
  /// It was started again, alone.
  void again(std::uint64_t rank, Time now);

  /// A sentence for the person: of a stall, once for each; of a straggler, once for each node.
  std::optional<std::string> news(Time now);
  /// The job has failed by a stall.
  std::optional<Stall> failed(Time now) const;

 private:
  struct Report {
    Time at;
    double cpu_seconds = 0;
    double queued_seconds = 0;
  };
  struct One {
    RankOn where;
    Time alive;
    bool over = false;
    std::optional<RankUse> last{};
    std::deque<Report> reports{};  ///< of the last kStragglerSpan, and one before
  };
  struct Share {
    std::string node;
    double used = 0;  ///< of a processor, the mean of its ranks
    double queued = 0;
  };
  std::optional<Stall> stalled(std::chrono::milliseconds span, Time now) const;
  std::vector<Share> shares(Time now) const;
  std::optional<std::string> straggler(Time now);

  ActivityRules rules_;
  std::vector<One> ranks_;
  std::set<std::string> told_;
  bool told_stall_ = false;
};

/// `0-2, 5`
std::string rank_list(const std::vector<std::uint64_t>& ranks);

}  // namespace mlenv::job
