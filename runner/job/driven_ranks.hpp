#pragma once
// The ranks of the attempt that goes on: started, watched, started again alone, signalled, ended.
// For drive.cpp alone.
#include <deque>
#include <string>
#include <vector>

#include "runner/job/activity.hpp"
#include "runner/job/drive_nodes.hpp"
#include "runner/job/rank_policy.hpp"

namespace mlenv::job {

class DrivenRanks {
 public:
  /// `nodes` need not be there yet: they are made with events().
  DrivenRanks(const DrivePlan& plan, const DriveEvents& events, DrivenNodes& nodes);

  /// What nodes tell of ranks comes here.
  RankEvents events();

  /// A new attempt: all are started. `with`: the node of each place.
  void begin(std::uint64_t number, const JobPlan& plan, const std::vector<Place>& places,
             const std::vector<std::size_t>& with);
  /// Between waits: nodes that were lost, ranks that are due again, stalls, those that are left
  /// when all that the job waits for is done, and those that live on after a signal and the grace.
  /// A node that does not tell of its ranks' end after SIGKILL is given up, with a
  /// notice: a process may sleep in the kernel for ever, and a node may say what it likes.
  void look();
  /// SIGTERM to all that still run, and SIGKILL after the grace.
  void stop(std::chrono::milliseconds grace);
  /// To all; one that ends programs ends the attempt after the grace, a second one at once, and a
  /// third one waits for no node any more.
  void signal(int number);
  /// What became of them, and what failed first. There are none then.
  void finish(AttemptResult& result);

  bool stopping() const { return stopping_; }
  bool all_over() const;
  bool all_run() const;  ///< none is over
  /// The first signal that was to end them; 0: none.
  int ended_by() const { return signal_; }
  /// Of those that end programs, how many came.
  int ending_signals() const { return ending_signals_; }
  /// A node could not do what it was asked to, and nothing can be made of that.
  const std::optional<Error>& fatal() const { return fatal_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    RankResult result;
    std::size_t node = 0;
    std::deque<std::string> lines{};
    bool over = false;
    std::optional<LostNode> lost{};  ///< with its node, or ended by it, and why
    Replacement again{};             ///< where it alone is started again
  };

  void notice(const std::string& text) const;
  void start(Running& one);
  RankStart start_of(const Running& one) const;
  bool runs_on(std::size_t node, std::uint64_t rank) const;
  void failed(std::size_t node, const std::string& during, const Error& error);
  void rank_ended(Running& one, const RankEnd& end);
  void node_lost(Running& one, double when, const std::string& why);
  void heed_pause();
  void heed_lost();
  bool others_work(const Running& but) const;
  bool replaced(Running& one, bool by_itself, const std::string& what);
  void replace_due();
  bool is_where_it_was(const Running& one) const;
  void heed_activity();
  bool done() const;
  void kill_by(Clock::time_point at);
  void kill_late();
  void give_up_late();
  void signal_rank(const Running& one, int number);

  const DrivePlan& plan_;
  const DriveEvents& events_;
  DrivenNodes& nodes_;
  Activity activity_;
  Clock::time_point looked_{};
  std::optional<FirstFailure> stalled_;
  std::vector<Running> ranks_;  ///< by rank
  std::uint64_t number_ = 0;    ///< of the attempt
  std::vector<Place> places_;
  std::string hosts_;   ///< the nodes, for /etc/hosts
  std::string secret_;  ///< of MPI's containers
  std::optional<Clock::time_point> kill_at_;
  std::optional<Clock::time_point> give_up_at_;  ///< SIGKILL was asked for
  bool stopping_ = false;
  int signal_ = 0;
  int ending_signals_ = 0;
  std::optional<Error> fatal_;
};

}  // namespace mlenv::job
