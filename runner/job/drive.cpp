#include "runner/job/drive.hpp"

#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>

#include "runner/job/activity.hpp"
#include "runner/job/drive_nodes.hpp"
#include "runner/job/interfaces.hpp"
#include "runner/job/job_status.hpp"
#include "runner/job/preflight_nodes.hpp"
#include "runner/local/signal_queue.hpp"
#include "runner/local/stop_listener.hpp"
#include "runner/node/node_gpus.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLastLines = 20;

double seconds_now() { return unix_seconds(std::chrono::system_clock::now()); }

std::string now_text() { return utc_text(std::chrono::system_clock::now()); }

/// That a rank on a node of these facts sees.
std::uint64_t gpus_seen(const std::string& word, const Facts& facts) {
  if (!facts.gpus) return 0;
  const GpuChoice choice = asked_gpus(word);
  if (choice.kind == GpuChoice::Kind::none) return 0;
  if (choice.kind == GpuChoice::Kind::count) return choice.count;
  return choice.kind == GpuChoice::Kind::named ? choice.devices.size() : facts.gpus->size();
}

/// Ctrl-Z does nothing while it lives: nodes would take a controller that is stopped for dead.
/// Children are as they would be (a handler does not outlive exec).
class WithoutStops {
 public:
  WithoutStops() {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    nothing.sa_flags = SA_RESTART;
    ::sigaction(SIGTSTP, &nothing, &before_);
  }
  WithoutStops(const WithoutStops&) = delete;
  WithoutStops& operator=(const WithoutStops&) = delete;
  ~WithoutStops() { ::sigaction(SIGTSTP, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

struct Running {
  RankResult result;
  std::size_t node = 0;
  std::deque<std::string> lines{};
  bool over = false;
  std::optional<LostNode> lost{};  ///< its node had it end, and why
};

class Drive {
 public:
  Drive(Store& store, NodeStarter& starter, const DrivePlan& plan, const DriveEvents& events)
      : plan_(plan),
        events_(events),
        nodes_(store, starter, plan, events, rank_events()),
        stops_(events.control),
        activity_({plan.job.stall_timeout, plan.job.strategy == Strategy::allreduce}) {
    if (plan.job.deadline) ends_at_ = Clock::now() + *plan.job.deadline;
  }

  JobOutcome run() {
    nodes_.require_offers();
    for (std::uint64_t number = 0;; ++number) {
      gather();
      between_ = ending();
      if (between_) break;
      if (events_.ready) events_.ready(nodes_.states());
      if (number == 0 && plan_.job.preflight) preflight();
      between_ = plan_.preflight_alone || ending();
      if (between_) break;
      outcome_.attempts.push_back(attempt(number));
      const AttemptResult& last = outcome_.attempts.back();
      if (events_.attempt_ended) events_.attempt_ended(last);
      if (!last.failure || ending() || number >= plan_.job.restarts) break;
      notice(fmt::format("restart {} of {}", number + 1, plan_.job.restarts));
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
  void gather() {
    nodes_.forgive();
    while (!ending() && nodes_.advance()) wait();
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
    for (const std::size_t node : with) result.places.push_back(place(node, with.size()));
    const JobPlan plan = job::plan(plan_.job, result.places, plan_.id, number);
    hosts_ = with.size() > 1 ? etc_hosts_of(result.places) : "";
    if (events_.planned) events_.planned(number, result.places, plan);
    start_ranks(plan, with);
    while (!all_over()) {
      wait();
      heed_lost();
      heed_activity();
      if (done()) stop_all(plan_.job.grace);
      kill_late();
    }
    finish(result);
    if (fatal_) throw Error{*fatal_};
    return result;
  }

  Place place(std::size_t node, std::size_t nodes) const {
    const NodeState& state = nodes_.state(node);
    Place place =
        place_of(plan_.job, nodes, {state.offer.name, state.offer.address, state.offer.interface},
                 *state.hello);
    place.ports = *nodes_.ports(node);
    place.gpus = gpus_seen(plan_.gpus, *state.facts);
    place.host = state.hello->host;
    return place;
  }

  /// What became of the ranks, and what failed first.
  void finish(AttemptResult& result) {
    result.ended = now_text();
    std::map<std::string, double> offsets;
    std::vector<LostNode> lost;
    for (Running& one : ranks_) {
      const NodeState& state = nodes_.state(one.node);
      offsets[state.offer.name] = state.clock_offset;
      if (one.lost) {
        lost.push_back(*one.lost);
      } else if (!one.result.end && state.lost) {
        lost.push_back({state.offer.name, nodes_.last_heard(one.node), *state.lost});
      }
      one.result.last_lines.assign(one.lines.begin(), one.lines.end());
      result.ranks.push_back(std::move(one.result));
    }
    ranks_.clear();
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

  void start_ranks(const JobPlan& plan, const std::vector<std::size_t>& with) {
    kill_at_.reset();
    stopping_ = false;
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
    for (const Running& one : ranks_) {
      if (NodeLink* link = nodes_.link(one.node)) link->start(start_of(one, plan.ranks.size()));
    }
  }

  RankStart start_of(const Running& one, std::size_t world) const {
    const Rank& rank = one.result.rank;
    RankStart start{
        rank.rank,  plan_.start, plan_.run, plan_.code_digest.has_value(), plan_.most_log_bytes,
        plan_.gpus, hosts_};
    start.run.env = rank.env;
    start.run.env.insert(start.run.env.end(), plan_.run.env.begin(), plan_.run.env.end());
    start.record.job =
        RecordedRank{plan_.id, rank.rank, world, one.result.node, rank.role, number_};
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
      if (ranks_.empty()) return;
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
      one.lost = LostNode{one.result.node, seconds_now(), end.ended_by_node};
      return node_lost(one, end.ended_by_node);
    }
    one.result.end = end;
    const bool failed = end.exit_code != 0 || end.failure;
    if (!failed || stopping_) return;
    notice(fmt::format("rank {} on {} {}; the others are ended", one.result.rank.rank,
                       one.result.node, how_it_ended(end)));
    stop_all(plan_.job.grace);
  }

  void node_lost(const Running& one, const std::string& why) {
    if (stopping_) return;
    notice(fmt::format("node {} is lost: {}; the ranks of others are ended", one.result.node, why));
    stop_all(plan_.job.grace);
  }

  void heed_lost() {
    for (Running& one : ranks_) {
      if (one.over || nodes_.link(one.node) != nullptr) continue;
      one.over = true;
      node_lost(one, nodes_.state(one.node).lost.value_or(""));
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
    if (ends_at_ && Clock::now() >= *ends_at_) end_all(EndedBy::timeout, plan_.job.grace);
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
  StopListener stops_;
  Activity activity_;
  std::optional<FirstFailure> stalled_;
  std::vector<Running> ranks_;  ///< of the attempt that goes on, by rank
  std::uint64_t number_ = 0;    ///< of that attempt
  std::string hosts_;           ///< its nodes, for /etc/hosts
  std::optional<Clock::time_point> kill_at_;
  std::optional<Clock::time_point> ends_at_;
  bool stopping_ = false;
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
