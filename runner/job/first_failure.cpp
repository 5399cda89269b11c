#include <limits>

#include "runner/job/drive.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double seconds_of(const std::string& utc) {
  const auto when = parse_utc(utc);
  if (!when) return kNever;
  return std::chrono::duration<double>(when->time_since_epoch()).count();
}

/// By our clock.
double ended_at(const RankResult& rank, const std::map<std::string, double>& offsets) {
  if (rank.end->record.empty()) return kNever;
  try {
    const RunRecord record = parse_run(rank.end->record, "a rank's record");
    if (!record.end) return kNever;
    const auto offset = offsets.find(rank.node);
    return seconds_of(record.end->ended) - (offset == offsets.end() ? 0 : offset->second);
  } catch (const Error&) {
    return kNever;  // of another version
  }
}

/// One that was told to end counts where it had ended before.
bool failed(const RankResult& rank, double ended) {
  if (!rank.end || (rank.stopped && ended >= rank.stop_sent)) return false;
  return rank.end->exit_code != 0 || rank.end->failure.has_value();
}

}  // namespace

std::optional<FirstFailure> first_failure(const std::vector<RankResult>& ranks,
                                          const std::map<std::string, double>& clock_offsets,
                                          const std::vector<LostNode>& lost) {
  std::optional<FirstFailure> first;
  double when = kNever;
  const auto take = [&](double at, FirstFailure one) {
    if (first && at >= when) return;
    first = std::move(one);
    when = at;
  };
  for (const RankResult& rank : ranks) {
    const double ended = rank.end ? ended_at(rank, clock_offsets) : kNever;
    if (!failed(rank, ended)) continue;
    take(ended, {FirstFailure::What::rank, rank.rank.rank, rank.node, {}});
  }
  for (const LostNode& node : lost) {
    take(node.last_heard, {FirstFailure::What::node, 0, node.name, node.why});
  }
  return first;
}

}  // namespace mlenv::job
