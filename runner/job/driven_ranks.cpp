#include "runner/job/driven_ranks.hpp"

#include <algorithm>
#include <csignal>

#include "runner/job/job_places.hpp"
#include "runner/job/job_status.hpp"
#include "runner/job/mpi.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kLastLines = 20;
/// From SIGKILL until a node is given up: a process with much memory, or a GPU, takes seconds.
constexpr std::chrono::seconds kMostRanksDying{8};
/// The same where a person has asked twice.
constexpr std::chrono::seconds kMostRanksDyingHurried{2};

double seconds_now() { return unix_seconds(std::chrono::system_clock::now()); }

void note_told_to_end(RankResult& rank) {
  if (rank.stopped) return;
  rank.stopped = true;
  rank.stop_sent = seconds_now();
}

}  // namespace

DrivenRanks::DrivenRanks(const DrivePlan& plan, const DriveEvents& events, DrivenNodes& nodes)
    : plan_(plan),
      events_(events),
      nodes_(nodes),
      activity_({plan.job.stall_timeout, plan.job.strategy == Strategy::allreduce}) {}

void DrivenRanks::notice(const std::string& text) const {
  if (events_.notice) events_.notice(text);
}

void DrivenRanks::begin(std::uint64_t number, const JobPlan& plan, const std::vector<Place>& places,
                        const std::vector<std::size_t>& with) {
  kill_at_.reset();
  give_up_at_.reset();
  stopping_ = false;
  number_ = number;
  places_ = places;
  hosts_ = with.size() > 1 ? etc_hosts_of(places) : "";
  secret_ = mpi_secret(plan_.job);
  for (const Rank& rank : plan.ranks) {
    Running one;
    one.node = with[rank.node];
    one.result.rank = rank;
    one.result.node = nodes_.state(one.node).offer.name;
    ranks_.push_back(std::move(one));
  }
  std::vector<Activity::RankOn> watched;
  for (const Running& one : ranks_) watched.push_back({one.result.rank.rank, one.result.node});
  looked_ = Clock::now();
  activity_.begin(watched, looked_);
  for (Running& one : ranks_) start(one);
}

void DrivenRanks::start(Running& one) {
  one.again.started(Clock::now());
  if (NodeLink* link = nodes_.link(one.node)) link->start(start_of(one));
}

RankStart DrivenRanks::start_of(const Running& one) const {
  const Rank& rank = one.result.rank;
  RankStart start{
      rank.rank,  plan_.start, plan_.run, plan_.code_digest.has_value(), plan_.most_log_bytes,
      plan_.gpus, hosts_,      {}};
  start.record.after.clear();
  start.run.env = rank.env;
  start.run.env.insert(start.run.env.end(), plan_.run.env.begin(), plan_.run.env.end());
  start.record.job =
      RecordedRank{plan_.id, rank.rank, ranks_.size(), one.result.node, rank.role, number_};
  if (!secret_.empty()) start_mpi(plan_.job, places_, rank, secret_, start);
  return start;
}

/// What a node says of others' ranks, or of one that has ended, is not heeded.
bool DrivenRanks::runs_on(std::size_t node, std::uint64_t rank) const {
  return rank < ranks_.size() && ranks_[rank].node == node && !ranks_[rank].over;
}

RankEvents DrivenRanks::events() {
  RankEvents events;
  events.started = [this](std::size_t node, std::uint64_t rank, const std::string& run) {
    if (!runs_on(node, rank)) return;
    ranks_[rank].result.run = run;
    if (events_.started) events_.started(number_, rank);
    if (signal_ != 0) signal_rank(ranks_[rank], signal_);
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
    failed(node, during, error);
  };
  return events;
}

void DrivenRanks::failed(std::size_t node, const std::string& during, const Error& error) {
  // One that is not yet taken in is tried again.
  const bool concerned = std::any_of(ranks_.begin(), ranks_.end(), [&](const Running& one) {
    return one.node == node && !one.over;
  });
  if (!concerned) return;
  fatal_ = error;
  fatal_->while_doing(fmt::format("node `{}`, {}", nodes_.state(node).offer.name, during));
  stop(plan_.job.grace);
}

void DrivenRanks::rank_ended(Running& one, const RankEnd& end) {
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
  stop(plan_.job.grace);
}

void DrivenRanks::node_lost(Running& one, double when, const std::string& why) {
  if (replaced(one, false, "is lost with its node: " + why)) return;
  one.lost = LostNode{one.result.node, when, why};
  if (stopping_) return;
  notice(fmt::format("node {} is lost: {}; the ranks of others are ended", one.result.node, why));
  stop(plan_.job.grace);
}

void DrivenRanks::heed_lost() {
  for (Running& one : ranks_) {
    if (one.over || nodes_.link(one.node) != nullptr) continue;
    one.over = true;
    activity_.over(one.result.rank.rank);
    node_lost(one, nodes_.last_heard(one.node), nodes_.state(one.node).lost.value_or(""));
  }
}

bool DrivenRanks::others_work(const Running& but) const {
  return std::any_of(ranks_.begin(), ranks_.end(), [&](const Running& one) {
    return &one != &but && !one.over && one.result.rank.role == but.result.rank.role;
  });
}

/// The rank alone is started again, or would be; what it ended with is nobody's failure.
bool DrivenRanks::replaced(Running& one, bool by_itself, const std::string& what) {
  if (fate_of(one.result.rank, plan_.job) != Fate::replaced) return false;
  const bool comes = by_itself || nodes_.comes_again(one.node);
  if (!comes && !others_work(one)) return false;
  if (!stopping_) {
    if (!by_itself) one.again.node_lost(Clock::now());
    if (by_itself && !one.again.failed(Clock::now())) return false;
    notice(fmt::format(
        "rank {} on {} ({}) {}; {}", one.result.rank.rank, one.result.node, one.result.rank.role,
        what, comes ? "it is started again, and the others go on" : "the others go on without it"));
  }
  one.result.stopped = true;
  one.result.stop_sent = 0;
  return true;
}

/// Those that are started again alone.
void DrivenRanks::replace_due() {
  for (Running& one : ranks_) {
    if (!one.over || !one.again.due(Clock::now()) || !is_where_it_was(one)) continue;
    one.over = false;
    const std::uint64_t before = one.result.replaced;
    one.result = {one.result.rank, one.result.node, "", std::nullopt, false, 0, before + 1};
    activity_.again(one.result.rank.rank, Clock::now());
    start(one);
  }
}

/// The others know it by its address.
bool DrivenRanks::is_where_it_was(const Running& one) const {
  if (!nodes_.is_ready(one.node)) return false;
  const Place& was = places_[one.result.rank.node];
  try {
    return place_in(plan_, nodes_.state(one.node), places_.size(), was.ports).address ==
           was.address;
  } catch (const Error&) {
    return false;  // it is without its network
  }
}

/// Notices of what ranks do, and a stall that is a failure.
void DrivenRanks::heed_activity() {
  if (stopping_) return;
  if (const auto news = activity_.news(Clock::now())) notice(*news);
  const std::optional<Stall> stall = activity_.failed(Clock::now());
  if (!stall) return;
  stalled_ = FirstFailure{FirstFailure::What::rank, stall->rank, ranks_[stall->rank].result.node,
                          stall->why};
  notice(stall->why + "; all ranks are ended");
  stop(plan_.job.grace);
}

/// The controller's loop may have been held up, by a disk that stalls.
void DrivenRanks::heed_pause() {
  constexpr std::chrono::seconds kNoPause{2};
  const Clock::time_point now = Clock::now();
  const Clock::duration since = now - std::exchange(looked_, now);
  if (since > kNoPause) activity_.not_heard_for(since);
}

void DrivenRanks::look() {
  heed_pause();
  heed_lost();
  if (!stopping_) replace_due();
  heed_activity();
  if (done()) stop(plan_.job.grace);
  kill_late();
  give_up_late();
}

bool DrivenRanks::all_run() const {
  return std::none_of(ranks_.begin(), ranks_.end(), [](const Running& one) { return one.over; });
}

bool DrivenRanks::all_over() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Running& one) { return one.over; });
}

/// All that the job waits for is done, and others still run.
bool DrivenRanks::done() const {
  if (stopping_) return false;
  return std::all_of(ranks_.begin(), ranks_.end(), [&](const Running& one) {
    return one.over || !is_essential(one.result.rank, plan_.job);
  });
}

void DrivenRanks::stop(std::chrono::milliseconds grace) {
  stopping_ = true;
  for (Running& one : ranks_) {
    if (one.over) continue;
    note_told_to_end(one.result);
    if (NodeLink* link = nodes_.link(one.node)) link->stop(one.result.rank.rank, grace);
  }
  kill_by(Clock::now() + grace);
}

/// Never later than was said before.
void DrivenRanks::kill_by(Clock::time_point at) {
  if (!kill_at_ || at < *kill_at_) kill_at_ = at;
}

/// Whoever lives on after a signal and the grace.
void DrivenRanks::kill_late() {
  const Clock::time_point now = Clock::now();
  if (!kill_at_ || now < *kill_at_) return;
  stop(std::chrono::milliseconds{0});
  kill_at_.reset();
  const auto until = now + (ending_signals_ > 1 ? kMostRanksDyingHurried : kMostRanksDying);
  if (!give_up_at_ || until < *give_up_at_) give_up_at_ = until;
}

/// Whoever does not even die of SIGKILL, as far as their node tells.
void DrivenRanks::give_up_late() {
  if (!give_up_at_ || Clock::now() < *give_up_at_) return;
  give_up_at_.reset();
  for (const Running& one : ranks_) {
    if (one.over || nodes_.link(one.node) == nullptr) continue;
    notice(
        fmt::format("node {} is given up: rank {} has not ended there since it was to be killed; "
                    "look there for what is left of it",
                    one.result.node, one.result.rank.rank));
    nodes_.give_up(one.node, "its ranks did not end when they were killed");
  }
  heed_lost();
}

void DrivenRanks::signal_rank(const Running& one, int number) {
  if (one.over || one.result.run.empty()) return;
  if (NodeLink* link = nodes_.link(one.node)) link->signal(one.result.rank.rank, number);
}

void DrivenRanks::signal(int number) {
  const bool ends = number != SIGUSR1 && number != SIGUSR2;
  const bool again = ends && signal_ != 0;
  if (ends) ++ending_signals_;
  if (ends && !again) {
    signal_ = number;
    kill_by(Clock::now() + plan_.job.grace);
  }
  if (again) kill_by(Clock::now());
  if (ending_signals_ > 2) give_up_at_ = Clock::now();
  for (Running& one : ranks_) {
    if (ends && !one.over) note_told_to_end(one.result);
    signal_rank(one, number);
  }
  if (ends) stopping_ = true;
}

void DrivenRanks::finish(AttemptResult& result) {
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
  result.failure = first_failure(result.ranks, offsets, lost);
  if (stalled_) result.failure = std::exchange(stalled_, std::nullopt);
}

}  // namespace mlenv::job
