#pragma once
// A rank on its node: a run with a record and a log of its own, and what its controller is told of
// it, in this order: that it started, its lines (and now and then what it uses), its end.
#include <chrono>
#include <optional>

#include "runner/job/channel.hpp"
#include "runner/local/detached.hpp"
#include "runner/node/rank_use.hpp"
#include "runner/record/run_log.hpp"

namespace mlenv::job {

class RankRun {
 public:
  using Clock = std::chrono::steady_clock;

  RankRun(std::uint64_t rank, const DetachedRun& run);

  std::uint64_t rank() const { return rank_; }
  /// Readable: `hear`. -1 once it is over.
  int fd() const { return over_ ? -1 : run_.fd(); }
  void hear();
  /// Says what is new of it, as far as there is room.
  void tell(Channel& channel);
  /// Nothing is left of it, and all is said.
  bool done() const { return told_end_; }
  bool over() const { return over_; }
  /// Where it writes its log; empty: not known yet.
  fs::path log() const;

  void signal(int number);
  /// As `mlenv stop` does it; before the command runs, once it does.
  void stop(std::chrono::milliseconds grace);
  /// From now on its end is not the command's own: RankEnd::ended_by_node.
  void blame(const std::string& why);
  /// Kills it, where stopping it has come to nothing.
  void tick();
  void kill();

 private:
  void ask_to_stop();
  bool tell_lines(Channel& channel);
  void tell_loss(Channel& channel, bool ended);
  void tell_use(Channel& channel);
  RankEnded end() const;

  std::uint64_t rank_;
  fs::path runs_;
  AttachedRun run_;
  std::optional<LogReader> lines_;
  std::optional<RankUseReader> use_;
  std::optional<std::chrono::milliseconds> stop_waits_;  ///< the grace
  std::optional<Clock::time_point> kill_at_;
  Fd stopping_;  ///< the connection on which that was asked
  std::string ended_by_node_;
  bool told_start_ = false;
  bool told_loss_ = false;
  bool over_ = false;
  bool told_end_ = false;
};

}  // namespace mlenv::job
