#include "runner/job/drive.hpp"

#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>

#include "runner/job/absent_nodes.hpp"
#include "runner/job/activity.hpp"
#include "runner/job/drive_nodes.hpp"
#include "runner/job/job_places.hpp"
#include "runner/job/job_status.hpp"
#include "runner/job/mpi.hpp"
#include "runner/job/preflight_nodes.hpp"
#include "runner/job/rank_policy.hpp"
#include "runner/local/signal_queue.hpp"
#include "runner/local/stop_listener.hpp"
#include "runner/local/without_stops.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLastLines = 20;

double seconds_now() { return unix_seconds(std::chrono::system_clock::now()); }

std::string now_text() { return utc_text(std::chrono::system_clock::now()); }

struct Running {
  RankResult result;
  std::size_t node = 0;
  std::deque<std::string> lines{};
  bool over = false;
  std::optional<LostNode> lost{};  ///< with its node, or ended by it, and why
  Replacement again{};             ///< where it alone is started again
};

class Drive {
 public:
  Drive(Store& store, NodeStarter& starter, const DrivePlan& plan, const DriveEvents& events)
      : plan_(plan),
        events_(events),
        nodes_(store, starter, plan, events, rank_events()),
        absent_(plan, events, nodes_),
        stops_(events.control),
        activity_({plan.job.stall_timeout, plan.job.strategy == Strategy::allreduce}) {
    if (plan.job.deadline) ends_at_ = Clock::now() + *plan.job.deadline;
  }

  JobOutcome run() {
    nodes_.require_offers();
    std::uint64_t restarts = 0;
    for (std::uint64_t number = 0;; ++number) {
      gather(number);
      between_ = ending();
      if (between_) break;
      if (events_.ready) events_.ready(nodes_.ready_states());
      if (number == 0 && plan_.job.preflight) preflight();
      between_ = plan_.preflight_alone || ending();
      if (between_) break;
      outcome_.attempts.push_back(attempt(number));
      const AttemptResult& last = outcome_.attempts.back();
      if (events_.attempt_ended) events_.attempt_ended(last);
      const Next next =
          next_after({last.failure.has_value(), last.node_lost, last.to_grow, absent_.ready()},
                     plan_.job, restarts);
      if (next == Next::end || ending()) break;
      notice(next == Next::restart ? fmt::format("restart {} of {}", ++restarts, plan_.job.restarts)
                                   : fmt::format("going on with {} of {} nodes", absent_.ready(),
                                                 plan_.job.nodes.most));
    }
    outcome_.nodes = nodes_.states();
    leave();
    outcome_.exit_code = status_of(outcome_, plan_.job, between_);
    return std::move(outcome_);
  }

 private:
  bool ending() const {
    return outcome_.signal != 0 || outcome_.ended_by != EndedBy::itself || fatal_.has_value();
  }

  void notice(const std::string& text) const {
    if (events_.notice) events_.notice(text);
  }

  /// Until enough nodes are ready, or nothing more can be hoped for.
  void gather(std::uint64_t number) {
    while (!ending() && absent_.gather(number)) wait();
    if (!ending()) nodes_.require_enough();
  }

  void preflight() {
    const Preflight found = preflight_of(nodes_, plan_.job, [this] {
      wait();
      return !ending();
    });
    if (ending()) return;
    if (events_.preflight) events_.preflight(found);
    if (!plan_.preflight_alone) require_links(found);
  }

  AttemptResult attempt(std::uint64_t number) {
    AttemptResult result;
    result.number = number;
    result.started = now_text();
    number_ = number;
    const std::vector<std::size_t> with = nodes_.ready();
    if (!fresh_ports(with) || ending()) return given_up(std::move(result), with);
    for (const std::size_t node : with) {
      result.places.push_back(place(node, with.size(), *nodes_.ports(node)));
    }
    const JobPlan plan = job::plan(plan_.job, result.places, plan_.id, number);
    hosts_ = with.size() > 1 ? etc_hosts_of(result.places) : "";
    if (events_.planned) events_.planned(number, result.places, plan);
    secret_ = mpi_secret(plan_.job);
    start_ranks(plan, result.places, with);
    absent_.began(with);
    while (!all_over()) {
      wait();
      heed_lost();
      if (!stopping_) heed_absent();
      heed_activity();
      if (done()) stop_all(plan_.job.grace);
      kill_late();
    }
    finish(result);
    if (fatal_) throw Error{*fatal_};
    return result;
  }

  Place place(std::size_t node, std::size_t nodes, std::vector<std::uint16_t> ports) const {
    return place_in(plan_, nodes_.state(node), nodes, std::move(ports));
  }

  /// What became of the ranks, and what failed first.
  void finish(AttemptResult& result) {
    result.ended = now_text();
    std::map<std::string, double> offsets;
    std::vector<LostNode> lost;
    for (Running& one : ranks_) {
      const NodeState& state = nodes_.state(one.node);
      offsets[state.offer.name] = state.clock_offset;
      if (one.lost) lost.push_back(*one.lost);
      one.result.last_lines.assign(one.lines.begin(), one.lines.end());
      result.ranks.push_back(std::move(one.result));
    }
    ranks_.clear();
    result.node_lost = !lost.empty();
    result.to_grow = growing_;
    result.failure = first_failure(result.ranks, offsets, lost);
    if (stalled_) result.failure = std::exchange(stalled_, std::nullopt);
  }

  /// An attempt that could not begin, since nodes went.
  AttemptResult given_up(AttemptResult result, const std::vector<std::size_t>& with) {
    result.ended = now_text();
    for (const std::size_t node : with) {
      const NodeState& state = nodes_.state(node);
      if (!state.lost) continue;
      result.failure = FirstFailure{FirstFailure::What::node, 0, state.offer.name, *state.lost};
      result.node_lost = true;
    }
    return result;
  }

  /// Ports that are free now, on each node. False: a node is gone, or the job is to end. Throws
  /// `no-port` where a node has fewer than the job needs.
  bool fresh_ports(const std::vector<std::size_t>& with) {
    const std::size_t count = ports_needed(plan_.job);
    for (const std::size_t node : with) {
      if (nodes_.link(node) == nullptr) return false;
      nodes_.ask_ports(node, count);
    }
    while (true) {
      bool all = true;
      for (const std::size_t node : with) {
        if (nodes_.link(node) == nullptr) return false;
        const auto& ports = nodes_.ports(node);
        all = all && ports;
        if (!ports || ports->size() >= count) continue;
        throw failure("no-port", "node `{}` has {} free ports, and its ranks need {}",
                      nodes_.state(node).offer.name, ports->size(), count)
            .hint("run fewer ranks on each node (`--ranks-per-node`)");
      }
      if (all) return true;
      if (ending()) return false;
      wait();
    }
  }

  void start_ranks(const JobPlan& plan, const std::vector<Place>& places,
                   const std::vector<std::size_t>& with) {
    kill_at_.reset();
    stopping_ = false;
    growing_ = false;
    places_ = places;
    world_ = plan.ranks.size();
    for (const Rank& rank : plan.ranks) {
      Running one;
      one.node = with[rank.node];
      one.result.rank = rank;
      one.result.node = nodes_.state(one.node).offer.name;
      ranks_.push_back(std::move(one));
    }
    std::vector<Activity::RankOn> watched;
    for (const Running& one : ranks_) watched.push_back({one.result.rank.rank, one.result.node});
    activity_.begin(watched, Clock::now());
    for (Running& one : ranks_) start(one);
  }

  void start(Running& one) {
    one.again.started(Clock::now());
    if (NodeLink* link = nodes_.link(one.node)) link->start(start_of(one));
  }

  RankStart start_of(const Running& one) const {
    const Rank& rank = one.result.rank;
    RankStart start{
        rank.rank,  plan_.start, plan_.run, plan_.code_digest.has_value(), plan_.most_log_bytes,
        plan_.gpus, hosts_,      {}};
    start.run.env = rank.env;
    start.run.env.insert(start.run.env.end(), plan_.run.env.begin(), plan_.run.env.end());
    start.record.job =
        RecordedRank{plan_.id, rank.rank, world_, one.result.node, rank.role, number_};
    if (!secret_.empty()) start_mpi(plan_.job, places_, rank, secret_, start);
    return start;
  }

  /// What a node says of others' ranks, or of one that has ended, is not heeded.
  bool runs_on(std::size_t node, std::uint64_t rank) const {
    return rank < ranks_.size() && ranks_[rank].node == node && !ranks_[rank].over;
  }

  RankEvents rank_events() {
    RankEvents events;
    events.started = [this](std::size_t node, std::uint64_t rank, const std::string& run) {
      if (!runs_on(node, rank)) return;
      ranks_[rank].result.run = run;
      if (events_.started) events_.started(number_, rank);
      if (outcome_.signal != 0) signal_rank(ranks_[rank], outcome_.signal);
    };
    events.line = [this](std::size_t node, std::uint64_t rank, const std::string& line) {
      if (!runs_on(node, rank)) return;
      activity_.line(rank, Clock::now());
      std::deque<std::string>& kept = ranks_[rank].lines;
      kept.push_back(line);
      if (kept.size() > kLastLines) kept.pop_front();
      if (events_.line) events_.line(number_, rank, line);
    };
    events.use = [this](std::size_t node, std::uint64_t rank, const RankUse& use) {
      if (runs_on(node, rank)) activity_.use(rank, use, Clock::now());
    };
    events.ended = [this](std::size_t node, std::uint64_t rank, const RankEnd& end) {
      if (runs_on(node, rank)) rank_ended(ranks_[rank], end);
    };
    events.failed = [this](std::size_t node, const std::string& during, const Error& error) {
      // One that is not yet taken in is tried again.
      const bool concerned = std::any_of(ranks_.begin(), ranks_.end(), [&](const Running& one) {
        return one.node == node && !one.over;
      });
      if (!concerned) return;
      Error told = error;
      told.while_doing(fmt::format("node `{}`, {}", nodes_.state(node).offer.name, during));
      fatal_ = std::move(told);
      stop_all(plan_.job.grace);
    };
    return events;
  }

  void rank_ended(Running& one, const RankEnd& end) {
    one.over = true;
    activity_.over(one.result.rank.rank);
    if (!end.ended_by_node.empty() && !one.result.stopped) {
      // As if the node were lost: the status is not the command's own.
      return node_lost(one, seconds_now(), end.ended_by_node);
    }
    one.result.end = end;
    const bool failed = end.exit_code != 0 || end.failure;
    if (!failed || replaced(one, true, how_it_ended(end)) || stopping_) return;
    notice(fmt::format("{} {}; the others are ended", called(one.result.rank, one.result.node),
                       how_it_ended(end)));
    stop_all(plan_.job.grace);
  }

  void node_lost(Running& one, double when, const std::string& why) {
    if (replaced(one, false, "is lost with its node: " + why)) return;
    one.lost = LostNode{one.result.node, when, why};
    if (stopping_) return;
    notice(fmt::format("node {} is lost: {}; the ranks of others are ended", one.result.node, why));
    stop_all(plan_.job.grace);
  }

  void heed_lost() {
    for (Running& one : ranks_) {
      if (one.over || nodes_.link(one.node) != nullptr) continue;
      one.over = true;
      node_lost(one, nodes_.last_heard(one.node), nodes_.state(one.node).lost.value_or(""));
    }
  }

  /// The rank alone is started again, or would be; what it ended with is nobody's failure.
  bool replaced(Running& one, bool by_itself, const std::string& what) {
    if (fate_of(one.result.rank, plan_.job) != Fate::replaced) return false;
    if (!by_itself && !nodes_.may_come(one.node) && !others_work(one)) return false;
    if (!stopping_) {
      if (!by_itself) one.again.node_lost(Clock::now());
      if (by_itself && !one.again.failed(Clock::now())) return false;
      notice(fmt::format("rank {} on {} ({}) {}; it is started again, and the others go on",
                         one.result.rank.rank, one.result.node, one.result.rank.role, what));
    }
    one.result.stopped = true;
    one.result.stop_sent = 0;
    return true;
  }

  bool others_work(const Running& but) const {
    return std::any_of(ranks_.begin(), ranks_.end(), [&](const Running& one) {
      return &one != &but && !one.over && one.result.rank.role == but.result.rank.role;
    });
  }

  /// Ranks that are started again alone, and nodes that are back.
  void heed_absent() {
    for (Running& one : ranks_) {
      if (!one.over || !one.again.due(Clock::now()) || !is_where_it_was(one)) continue;
      one.over = false;
      one.result = {one.result.rank, one.result.node, "", std::nullopt, false, 0};
      start(one);
    }
    absent_.look();
    const bool ends =
        std::any_of(ranks_.begin(), ranks_.end(), [](const Running& one) { return one.over; });
    if (ends || !absent_.may_take_in()) return;
    growing_ = true;
    stop_all(plan_.job.grace);
  }

  /// The others know it by its address.
  bool is_where_it_was(const Running& one) const {
    if (!nodes_.is_ready(one.node)) return false;
    const Place& was = places_[one.result.rank.node];
    try {
      return place(one.node, places_.size(), was.ports).address == was.address;
    } catch (const Error&) {
      return false;  // it is without its network
    }
  }

  /// Notices of what ranks do, and a stall that is a failure.
  void heed_activity() {
    if (stopping_) return;
    if (const auto news = activity_.news(Clock::now())) notice(*news);
    const std::optional<Stall> stall = activity_.failed(Clock::now());
    if (!stall) return;
    stalled_ = FirstFailure{FirstFailure::What::rank, stall->rank, ranks_[stall->rank].result.node,
                            stall->why};
    notice(stall->why + "; all ranks are ended");
    stop_all(plan_.job.grace);
  }

  bool all_over() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Running& one) { return one.over; });
  }

  /// All that the job waits for is done, and others still run.
  bool done() const {
    if (stopping_) return false;
    return std::all_of(ranks_.begin(), ranks_.end(), [&](const Running& one) {
      return one.over || !is_essential(one.result.rank, plan_.job);
    });
  }

  static void told_to_end(Running& one) {
    if (one.result.stopped) return;
    one.result.stopped = true;
    one.result.stop_sent = seconds_now();
  }

  /// SIGTERM to all that still run, and SIGKILL after the grace.
  void stop_all(std::chrono::milliseconds grace) {
    stopping_ = true;
    for (Running& one : ranks_) {
      if (one.over) continue;
      told_to_end(one);
      if (NodeLink* link = nodes_.link(one.node)) link->stop(one.result.rank.rank, grace);
    }
    kill_at_ = Clock::now() + grace;
  }

  /// Whoever lives on after a signal and the grace.
  void kill_late() {
    if (!kill_at_ || Clock::now() < *kill_at_) return;
    stop_all(std::chrono::milliseconds{0});
    kill_at_.reset();
  }

  void wait() {
    constexpr int kTick = 200;  // milliseconds
    std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}};
    const std::size_t nodes = fds.size();
    nodes_.add_to(fds);
    const std::size_t stops = fds.size();
    stops_.add_to(fds);
    const std::size_t others = fds.size();
    if (events_.poll_for) events_.poll_for(fds);
    if (::poll(fds.data(), fds.size(), kTick) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait for the nodes");
    }
    if (events_.polled) events_.polled(fds.data() + others);
    nodes_.hear(fds.data() + nodes);
    while (const int number = signals_.next()) take_signal(number);
    if (const std::optional<StopRequest> stop = stops_.hear(fds.data() + stops)) {
      end_all(EndedBy::stop,
              stop->grace_ms ? std::chrono::milliseconds(*stop->grace_ms) : plan_.job.grace);
    }
    if (!ends_at_ || Clock::now() < *ends_at_) return;
    notice(fmt::format("the job's deadline of {:.6g} s is over; its ranks are ended",
                       std::chrono::duration<double>(*plan_.job.deadline).count()));
    end_all(EndedBy::timeout, plan_.job.grace);
  }

  void end_all(EndedBy why, std::chrono::milliseconds grace) {
    if (outcome_.ended_by != EndedBy::itself) return;
    outcome_.ended_by = why;
    ends_at_.reset();
    stop_all(grace);
  }

  void signal_rank(const Running& one, int number) {
    if (one.over || one.result.run.empty()) return;
    if (NodeLink* link = nodes_.link(one.node)) link->signal(one.result.rank.rank, number);
  }

  void take_signal(int number) {
    const bool ends = number != SIGUSR1 && number != SIGUSR2;
    const bool again = ends && outcome_.signal != 0;
    if (ends && !again) {
      outcome_.signal = number;
      kill_at_ = Clock::now() + plan_.job.grace;
    }
    if (again) kill_at_ = Clock::now();
    for (Running& one : ranks_) {
      if (ends && !one.over) told_to_end(one);
      signal_rank(one, number);
    }
    if (ends) stopping_ = true;
  }

  /// Nodes take away what they made.
  void leave() {
    constexpr std::chrono::seconds kLongest{10};
    nodes_.say_goodbye();
    const auto until = Clock::now() + kLongest;
    while (!nodes_.all_gone() && Clock::now() < until) wait();
    nodes_.drop_all();
  }

  const DrivePlan& plan_;
  const DriveEvents& events_;
  SignalQueue signals_;
  WithoutStops no_stops_;
  DrivenNodes nodes_;
  AbsentNodes absent_;
  StopListener stops_;
  Activity activity_;
  std::optional<FirstFailure> stalled_;
  std::vector<Running> ranks_;  ///< of the attempt that goes on, by rank
  std::uint64_t number_ = 0;    ///< of that attempt
  std::uint64_t world_ = 0;
  std::vector<Place> places_;
  std::string hosts_;   ///< its nodes, for /etc/hosts
  std::string secret_;  ///< of MPI's containers
  std::optional<Clock::time_point> kill_at_;
  std::optional<Clock::time_point> ends_at_;
  bool stopping_ = false;
  bool growing_ = false;
  bool between_ = false;  ///< it was ended before its next attempt
  std::optional<Error> fatal_;
  JobOutcome outcome_;
};

}  // namespace

std::string how_it_ended(const RankEnd& end) {
  if (end.failure) return fmt::format("could not be run: {}", end.failure->message);
  if (end.out_of_memory) return "was killed for want of memory";
  if (end.signal) {
    const std::string name = signal_name(static_cast<int>(*end.signal));
    return fmt::format("was ended by signal {}{}", *end.signal,
                       name.empty() ? "" : " (" + name + ")");
  }
  return fmt::format("ended with status {}", end.exit_code);
}

std::string why_it_failed(const FirstFailure& failure, const RankResult& rank) {
  if (!failure.why.empty()) return failure.why;
  return rank.end ? how_it_ended(*rank.end) : "was lost";
}

JobOutcome drive(Store& store, NodeStarter& starter, const DrivePlan& plan,
                 const DriveEvents& events) {
  return Drive(store, starter, plan, events).run();
}

}  // namespace mlenv::job
