#pragma once
// Which measurement comes next, in the time that there is. A round gives each probe one start on
// each side, sides in turn, so that what changes on the machine meanwhile meets all of them alike;
// another side begins each round. First each probe has one round, in order of importance; then the
// most important ones, as many as there is time for, get the five that a claim needs (their rounds
// in turn, too); then all go on to what they want. What does not fit any more is left out:
// repetitions before probes, and less important ones before others.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlenv::compare {

/// Rounds without which nothing is claimed (kLeastLevel).
inline constexpr std::uint64_t kFewestRounds = 5;

struct PlannedProbe {
  std::uint64_t wanted = 1;     ///< starts on each side
  std::uint64_t warm_up = 0;    ///< the first of them, which count only where no other follows
  bool waits = false;           ///< its time has not come
  std::uint64_t done = 0;       ///< rounds of it
  std::vector<double> guessed;  ///< seconds of a start, for each side that takes part
  bool given_up = false;        ///< it fails everywhere, or there was no time for it
};

/// The next probe to start on all its sides, by its place in `probes`, so that `left` seconds are
/// enough; nullopt: there is none. Probes without a first start that do not fit are given up:
/// longer ones than what is left now will not fit later.
std::optional<std::size_t> next_probe(std::vector<PlannedProbe>& probes, double left);

/// Sides in the order of round `round`: each begins one in turn.
std::vector<std::size_t> turn(std::size_t sides, std::uint64_t round);

}  // namespace mlenv::compare
