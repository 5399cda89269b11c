#include "runner/compare/schedule.hpp"

#include <numeric>

namespace mlenv::compare {
namespace {

double cost_of(const PlannedProbe& probe) {
  return std::accumulate(probe.guessed.begin(), probe.guessed.end(), 0.0);
}

bool is_open(const PlannedProbe& probe) {
  return !probe.given_up && !probe.waits && probe.done < probe.wanted && !probe.guessed.empty();
}

/// The first one that has had no round; those that do not fit are given up.
std::optional<std::size_t> first_untried(std::vector<PlannedProbe>& probes, double left) {
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (!is_open(probes[i]) || probes[i].done > 0) continue;
    if (cost_of(probes[i]) <= left) return i;
    probes[i].given_up = true;
  }
  return std::nullopt;
}

/// The one with the fewest rounds of those that `takes`; of as many the more important one.
template <class Takes>
std::optional<std::size_t> fewest(const std::vector<PlannedProbe>& probes, Takes&& takes) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (!is_open(probes[i]) || !takes(probes[i])) continue;
    if (!best || probes[i].done < probes[*best].done) best = i;
  }
  return best;
}

}  // namespace

std::optional<std::size_t> next_probe(std::vector<PlannedProbe>& probes, double left) {
  if (const auto untried = first_untried(probes, left)) return untried;
  double promised = 0;
  const auto can_have_five = [&](const PlannedProbe& probe) {
    const std::uint64_t fewest = kFewestRounds + probe.warm_up;
    if (probe.done >= fewest) return false;
    promised += cost_of(probe) * static_cast<double>(fewest - probe.done);
    return promised <= left;
  };
  if (const auto one = fewest(probes, can_have_five)) return one;
  return fewest(probes, [&](const PlannedProbe& probe) { return cost_of(probe) <= left; });
}

std::vector<std::size_t> turn(std::size_t sides, std::uint64_t round) {
  std::vector<std::size_t> order(sides);
  for (std::size_t i = 0; i < sides; ++i) order[i] = (i + round) % sides;
  return order;
}

}  // namespace mlenv::compare
