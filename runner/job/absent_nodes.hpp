#pragma once
// The nodes that a job is without: how long it waits for them before an attempt, when they are
// tried again while others run, and when they are taken in. For drive.cpp alone.
#include <set>
#include <string>
#include <vector>

#include "runner/job/drive_nodes.hpp"
#include "runner/job/elastic.hpp"

namespace mlenv::job {

class AbsentNodes {
 public:
  AbsentNodes(const DrivePlan& plan, const DriveEvents& events, DrivenNodes& nodes)
      : job_(plan.job), events_(events), nodes_(nodes) {}

  /// Before the attempt of this number, until it is false: then it may begin, or nothing more can
  /// be hoped for. An elastic job waits `rescale_interval` for late nodes at first, and later for
  /// nobody once it has enough; any job waits minutes for nodes that it cannot do without, after a
  /// restart.
  bool gather(std::uint64_t number);
  /// The ranks of an attempt were started on these.
  void began(const std::vector<std::size_t>& with);
  /// While they run, between waits: starts agents on nodes that are due.
  void look();
  /// More nodes are ready than the attempt has, they are alike enough to the others, and it has run
  /// long enough. Says so; one that is not alike is not asked again.
  bool may_take_in();
  /// How many there are for the next attempt.
  std::size_t ready() const { return nodes_.ready().size(); }

 private:
  using Clock = BackOff::Clock;
  bool takes_part(std::size_t node) const;
  bool fits(const std::vector<NodeState>& others, std::size_t node);
  void drop_strangers();
  void say_waiting();

  const Job& job_;
  const DriveEvents& events_;
  DrivenNodes& nodes_;
  std::vector<std::size_t> with_;
  std::set<std::size_t> fitting_;  ///< newcomers, found to be alike enough while it gathers
  Clock::time_point began_{};
  std::optional<std::uint64_t> gathering_;  ///< for which attempt
  Clock::time_point since_{};               ///< it gathers
  std::optional<Clock::time_point> enough_since_;
  bool said_ = false;
};

}  // namespace mlenv::job
