#include "runner/job/drive.hpp"

#include <poll.h>
#include <cerrno>
#include <csignal>

#include "runner/job/absent_nodes.hpp"
#include "runner/job/driven_ranks.hpp"
#include "runner/job/job_places.hpp"
#include "runner/job/job_status.hpp"
#include "runner/job/preflight_nodes.hpp"
#include "runner/local/signal_queue.hpp"
#include "runner/local/stop_listener.hpp"
#include "runner/local/without_stops.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

using std::chrono::steady_clock;

std::string now_text() { return utc_text(std::chrono::system_clock::now()); }

class JobDrive {
 public:
  JobDrive(Store& store, NodeStarter& starter, const DrivePlan& plan, const DriveEvents& events)
      : store_(store),
        plan_(plan),
        events_(events),
        ranks_(plan, events, nodes_),
        nodes_(store, starter, plan, events, ranks_.events()),
        absent_(plan, events, nodes_),
        stops_(events.control) {
    if (plan.job.deadline) ends_at_ = began_ + (*plan.job.deadline - plan.before.used);
  }

  JobOutcome run() {
    nodes_.require_offers();
    const std::uint64_t first = plan_.before.attempts;
    progress_ = plan_.before;
    outcome_.attempts_before = first;
    for (std::uint64_t number = first;; ++number) {
      gather(number - first);
      between_ = ending();
      if (between_) break;
      if (events_.ready) events_.ready(nodes_.ready_states());
      if (number == first && plan_.job.preflight) preflight();
      if (number == first && plan_.job.preflight && !plan_.preflight_alone) gather_again();
      between_ = plan_.preflight_alone || ending();
      if (between_) break;
      progress_.attempts = number + 1;
      tell_progress();
      outcome_.attempts.push_back(attempt(number));
      const AttemptResult& last = outcome_.attempts.back();
      if (events_.attempt_ended) events_.attempt_ended(last);
      const Next next =
          next_after({last.failure.has_value(), last.node_lost, last.to_grow, absent_.ready()},
                     plan_.job, progress_.restarts);
      if (next == Next::end || ending()) break;
      if (next == Next::restart) ++progress_.restarts;
      tell_progress();
      notice(
          next == Next::restart
              ? fmt::format("restart {} of {}", progress_.restarts, plan_.job.restarts)
              : fmt::format("going on with {} of {} nodes", absent_.ready(), plan_.job.nodes.most));
    }
    outcome_.nodes = nodes_.states();
    ends_at_.reset();  // what nodes take to go is no part of it
    leave();
    outcome_.signal = ranks_.ended_by();
    outcome_.exit_code = status_of(outcome_, plan_.job, between_);
    return std::move(outcome_);
  }

 private:
  bool ending() const {
    return ranks_.ended_by() != 0 || outcome_.ended_by != EndedBy::itself ||
           ranks_.fatal().has_value();
  }

  void notice(const std::string& text) const {
    if (events_.notice) events_.notice(text);
  }

  void tell_progress() {
    told_progress_ = steady_clock::now();
    progress_.used = plan_.before.used +
                     std::chrono::duration_cast<std::chrono::milliseconds>(told_progress_ - began_);
    if (events_.progress) events_.progress(progress_);
  }

  /// Until enough nodes are ready, or nothing more can be hoped for. `round`: 0 is the first.
  void gather(std::uint64_t round) {
    while (!ending() && absent_.gather(round)) {
      wait();
      nodes_.say_who_waits();
    }
    if (!ending()) nodes_.require_enough();
  }

  /// Nodes may have gone or come meanwhile.
  void gather_again() {
    if (ending()) return;
    nodes_.require_enough();
    if (events_.ready) events_.ready(nodes_.ready_states());
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
    const std::vector<std::size_t> with = nodes_.ready();
    if (!fresh_ports(with) || ending()) return given_up(std::move(result), with);
    for (const std::size_t node : with) {
      result.places.push_back(
          place_in(plan_, nodes_.state(node), with.size(), *nodes_.ports(node)));
    }
    const JobPlan plan = job::plan(plan_.job, result.places, plan_.id, number);
    if (events_.planned) events_.planned(number, result.places, plan);
    need_only_what_it_needs(store_, plan_);  // it may go on for weeks
    ranks_.begin(number, plan, result.places, with);
    absent_.began(with);
    while (!ranks_.all_over()) {
      wait();
      ranks_.look();
      if (!ranks_.stopping()) result.to_grow = grows();
    }
    result.ended = now_text();
    ranks_.finish(result);
    if (ranks_.fatal()) throw Error{*ranks_.fatal()};
    return result;
  }

  /// Nodes are back: ranks are ended, so that the next attempt has more of them.
  bool grows() {
    absent_.look();
    if (!ranks_.all_run() || !absent_.may_take_in()) return false;
    ranks_.stop(plan_.job.grace);
    return true;
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
    constexpr std::chrono::seconds kBetween{10};
    if (steady_clock::now() - told_progress_ >= kBetween) tell_progress();
    nodes_.hear(fds.data() + nodes);
    while (const int number = signals_.next()) ranks_.signal(number);
    if (const std::optional<StopRequest> stop = stops_.hear(fds.data() + stops)) {
      end_all(EndedBy::stop,
              stop->grace_ms ? std::chrono::milliseconds(*stop->grace_ms) : plan_.job.grace);
    }
    if (!ends_at_ || steady_clock::now() < *ends_at_) return;
    notice(fmt::format("the job's deadline of {:.6g} s is over; its ranks are ended",
                       std::chrono::duration<double>(*plan_.job.deadline).count()));
    end_all(EndedBy::timeout, plan_.job.grace);
  }

  void end_all(EndedBy why, std::chrono::milliseconds grace) {
    if (outcome_.ended_by != EndedBy::itself) return;
    outcome_.ended_by = why;
    ends_at_.reset();
    ranks_.stop(grace);
  }

  /// Nodes take away what they made. One that is still on its way (ssh waits for a machine that
  /// does not answer) has made nothing.
  void leave() {
    constexpr std::chrono::seconds kLongest{10};
    constexpr std::chrono::seconds kUnmet{1};
    constexpr int kHurried = 2;  // signals that end programs
    nodes_.say_goodbye();
    const auto began = steady_clock::now();
    while (!nodes_.all_gone() && steady_clock::now() < began + kLongest) {
      wait();
      if (ranks_.ending_signals() >= kHurried && steady_clock::now() >= began + kUnmet) break;
      if (steady_clock::now() >= began + kUnmet) nodes_.drop_unmet();
    }
    nodes_.drop_all();
  }

  const Store& store_;
  const DrivePlan& plan_;
  const DriveEvents& events_;
  SignalQueue signals_{SignalQueue::Impatience::ends};
  WithoutStops no_stops_;
  DrivenRanks ranks_;
  DrivenNodes nodes_;
  AbsentNodes absent_;
  StopListener stops_;
  std::optional<steady_clock::time_point> ends_at_;
  steady_clock::time_point began_ = steady_clock::now();
  JobProgress progress_;
  steady_clock::time_point told_progress_ = began_;
  bool between_ = false;  ///< it was ended before its next attempt
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

void need_only_what_it_needs(const Store& store, const DrivePlan& plan) {
  std::vector<Digest> needs;
  const auto add = [&](const std::string& digest) {
    if (!digest.empty()) needs.push_back(Digest::parse(digest));
  };
  add(plan.image_digest);
  if (plan.code_digest) add(*plan.code_digest);
  for (const DataSet& set : plan.data) add(set.list);
  store.need_only(needs);
}

JobOutcome drive(Store& store, NodeStarter& starter, const DrivePlan& plan,
                 const DriveEvents& events) {
  return JobDrive(store, starter, plan, events).run();
}

}  // namespace mlenv::job
