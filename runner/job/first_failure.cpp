#include <limits>

#include "runner/job/drive.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

constexpr double kTimeUnknown = std::numeric_limits<double>::infinity();

/// By our clock.
double ended_at(const RankResult& rank, const std::map<std::string, double>& offsets) {
  if (rank.end->record.empty()) return kTimeUnknown;
  try {
    const RunRecord record = parse_run(rank.end->record, "a rank's record");
    if (!record.end) return kTimeUnknown;
    const auto offset = offsets.find(rank.node);
    const auto when = parse_utc(record.end->ended);
    if (!when) return kTimeUnknown;
    return unix_seconds(*when) - (offset == offsets.end() ? 0 : offset->second);
  } catch (const Error&) {
    return kTimeUnknown;  // of another version
  }
}

bool failed(const RankResult& rank) {
  return rank.end && (rank.end->exit_code != 0 || rank.end->failure.has_value());
}

}  // namespace

std::optional<FirstFailure> first_failure(const std::vector<RankResult>& ranks,
                                          const std::map<std::string, double>& clock_offsets,
                                          const std::vector<LostNode>& lost) {
  std::optional<FirstFailure> first;
  double when = kTimeUnknown;
  const auto take = [&](double at, FirstFailure one) {
    if (first && at >= when) return;
    first = std::move(one);
    when = at;
  };
  for (const RankResult& rank : ranks) {
    if (!failed(rank)) continue;
    const double ended = ended_at(rank, clock_offsets);
    // One that was told to end counts where it had ended before.
    if (rank.stopped && ended >= rank.stop_sent) continue;
    take(ended, {FirstFailure::What::rank, rank.rank.rank, rank.node, {}});
  }
  for (const LostNode& node : lost) {
    take(node.last_heard, {FirstFailure::What::node, 0, node.name, node.why});
  }
  return first;
}

}  // namespace mlenv::job
