#include "runner/job/activity.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

namespace mlenv::job {
namespace {

using std::chrono::duration;

double activity_seconds(Activity::Time from, Activity::Time to) {
  return duration<double>(to - from).count();
}

std::string waiting_text(const std::optional<RankUse>& use) {
  if (!use) return "in what is not known";
  if (use->stopped) return "stopped by a signal";
  const std::string at = use->waits_at.empty() ? "" : " (" + use->waits_at + ")";
  if (use->waits_for == "disk") return "waiting for a disk or file system" + at;
  if (use->waits_for == "output") return "waiting for what it writes" + at;
  if (use->waits_for == "network") return "waiting for the network" + at;
  if (use->waits_for == "pipe") return "waiting for another process" + at;
  if (use->waits_for == "time") return "asleep";
  return "waiting for a lock, a device or a child";
}

/// How likely it is the one for which the others wait: those wait for the network.
int suspicion(const std::optional<RankUse>& use) {
  if (!use) return 1;
  if (use->stopped) return 5;
  if (use->waits_for == "disk" || use->waits_for == "output") return 4;
  if (use->waits_for == "network") return 0;
  return use->waits_for == "time" ? 2 : 3;
}

constexpr int kSurelyTheCause = 4;

}  // namespace

std::string rank_list(const std::vector<std::uint64_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i;
    while (end + 1 < ranks.size() && ranks[end + 1] == ranks[end] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += i == end ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[end]);
    i = end + 1;
  }
  return text;
}

void Activity::begin(const std::vector<RankOn>& ranks, Time now) {
  ranks_.clear();
  told_.clear();
  told_stall_ = false;
  for (const RankOn& rank : ranks) ranks_.push_back({rank, now});
}

void Activity::line(std::uint64_t rank, Time now) {
  if (rank < ranks_.size()) ranks_[rank].alive = now;
}

void Activity::over(std::uint64_t rank) {
  if (rank < ranks_.size()) ranks_[rank].over = true;
}

void Activity::not_heard_for(std::chrono::steady_clock::duration span) {
  for (One& one : ranks_) one.alive += span;
}

void Activity::again(std::uint64_t rank, Time now) {
  if (rank >= ranks_.size()) return;
  ranks_[rank] = {ranks_[rank].where, now};
}

void Activity::use(std::uint64_t rank, const RankUse& use, Time now) {
  if (rank >= ranks_.size()) return;
  One& one = ranks_[rank];
  if (one.last && !one.reports.empty()) {
    const double seconds = activity_seconds(one.reports.back().at, now);
    const double used = use.cpu_seconds - one.last->cpu_seconds;
    // Less than before: a process of it has ended.
    if (used < 0 || (seconds > 0 && used / seconds > kIdleCpus)) one.alive = now;
  } else {
    one.alive = now;
  }
  one.last = use;
  one.reports.push_back({now, use.cpu_seconds, use.queued_seconds});
  while (one.reports.size() > 1 && now - one.reports[1].at >= kStragglerSpan) {
    one.reports.pop_front();
  }
}

std::optional<std::string> Activity::news(Time now) {
  std::chrono::milliseconds span = kStallTold;
  if (rules_.stall_timeout) span = std::min(span, *rules_.stall_timeout / 2);
  const std::optional<Stall> stall = stalled(span, now);
  if (stall && !std::exchange(told_stall_, true)) return stall->why;
  told_stall_ = stall.has_value();
  return rules_.synchronous ? straggler(now) : std::nullopt;
}

std::optional<Stall> Activity::failed(Time now) const {
  return rules_.stall_timeout ? stalled(*rules_.stall_timeout, now) : std::nullopt;
}

/// Nobody has shown a sign of life for `span`.
std::optional<Stall> Activity::stalled(std::chrono::milliseconds span, Time now) const {
  std::map<std::string, std::vector<std::uint64_t>> waiting;
  std::vector<std::uint64_t> all;
  const One* cause = nullptr;
  for (const One& one : ranks_) {
    if (one.over) continue;
    // One of which nothing was heard is not known to be idle.
    if (!one.last || now - one.alive < span) return std::nullopt;
    all.push_back(one.where.rank);
    waiting[waiting_text(one.last)].push_back(one.where.rank);
    if (cause == nullptr || suspicion(one.last) > suspicion(cause->last)) cause = &one;
  }
  if (cause == nullptr) return std::nullopt;
  std::string why =
      fmt::format("stalled: {} {} done nothing for {:.0f} s",
                  all.size() == 1 ? fmt::format("rank {}", all.front()) : "ranks " + rank_list(all),
                  all.size() == 1 ? "has" : "have", duration<double>(span).count());
  std::string details;
  for (const auto& [what, ranks] : waiting) {
    details += fmt::format("{}{} {}", details.empty() ? ": " : "; ", rank_list(ranks), what);
  }
  why += details;
  if (suspicion(cause->last) >= kSurelyTheCause && all.size() > 1) {
    why += fmt::format(" (rank {} on {} is what the others wait for)", cause->where.rank,
                       cause->where.node);
  }
  return Stall{cause->where.rank, std::move(why)};
}

std::vector<Activity::Share> Activity::shares(Time now) const {
  std::map<std::string, std::pair<Share, double>> of;
  for (const One& one : ranks_) {
    if (one.over || one.reports.size() < 2) return {};
    const Report& first = one.reports.front();
    const Report& last = one.reports.back();
    const double seconds = activity_seconds(first.at, last.at);
    // Whole spans alone are compared, and none of long ago.
    if (last.at - first.at < kStragglerSpan || now - last.at > kStragglerSpan) return {};
    auto& [share, count] = of[one.where.node];
    share.node = one.where.node;
    share.used += std::max(0.0, last.cpu_seconds - first.cpu_seconds) / seconds;
    share.queued += std::max(0.0, last.queued_seconds - first.queued_seconds) / seconds;
    count += 1;
  }
  std::vector<Share> all;
  for (const auto& [name, summed] : of) {
    all.push_back({name, summed.first.used / summed.second, summed.first.queued / summed.second});
  }
  return all;
}

std::optional<std::string> Activity::straggler(Time now) {
  constexpr double kOthersQueued = 1.0 / 3;
  constexpr double kOthersBusy = 0.5;
  constexpr double kPercent = 100;
  const std::vector<Share> all = shares(now);
  if (all.size() < 2) return std::nullopt;
  const double span = duration<double>(kStragglerSpan).count();
  for (const Share& one : all) {
    double used = 0;
    double queued = 0;
    for (const Share& other : all) {
      if (other.node == one.node) continue;
      used = std::max(used, other.used);
      queued = std::max(queued, other.queued);
    }
    const bool queues = one.queued >= kQueuedShare && queued <= one.queued * kOthersQueued;
    const bool computes = one.used >= kBusyShare && used <= one.used * kOthersBusy;
    if ((!queues && !computes) || !told_.insert(one.node).second) continue;
    if (queues) {
      return fmt::format(
          "node {} is behind: for {:.0f} s its ranks have waited for a processor "
          "{:.0f} % of the time, those of others {:.0f} % at most; something else "
          "uses its processors, or they are limited",
          one.node, span, one.queued * kPercent, queued * kPercent);
    }
    return fmt::format(
        "node {} is behind: for {:.0f} s its ranks have used {:.0f} % of a processor "
        "each, those of others {:.0f} % at most: they wait for it",
        one.node, span, one.used * kPercent, used * kPercent);
  }
  return std::nullopt;
}

}  // namespace mlenv::job
