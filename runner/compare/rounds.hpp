#pragma once
// What measure.cpp plans with: sides that are there, and who takes turns in which probe.
#include <cstdint>
#include <string>
#include <vector>

#include "runner/compare/probe_part.hpp"

namespace mlenv::compare {

struct Side {
  ActiveSide active;
  bool tools = false;  ///< the tools' image starts there
  double start = 0;    ///< seconds of one
};

/// Rounds of one probe, on sides that take their turns in it.
struct Rounds {
  const ProbeSpec* probe = nullptr;
  bool warms_up = false;  ///< a first start counts only where no other follows
  struct Taker {
    const Side* side = nullptr;
    ProbeSpec part;            ///< what of the probe can be measured there
    std::uint64_t starts = 0;  ///< of it, there, so far
  };
  std::vector<Taker> takers;         ///< those that still do
  std::vector<std::string> sides{};  ///< that ever did
};

/// A start of an emulated machine takes longer than many of all others together: it has rounds of
/// its own, which come after theirs, so that it takes none of the time for what can be claimed of
/// them.
inline bool is_slow(const Side& side) {
  constexpr double kSlow = 2;  // seconds
  return side.start > kSlow;
}

inline bool is_cold(const ProbeSpec& probe) {
  return probe.kind == ProbeKind::cold || probe.kind == ProbeKind::cold_training;
}

/// What nobody would do without.
inline bool is_basic(const ProbeSpec& probe) {
  return probe.kind == ProbeKind::command || probe.kind == ProbeKind::start;
}

/// What a first start reads is in memory for the next one. The cold ones read it each time, and
/// tools are measured by what they do after their start.
inline bool needs_warm_up(const ProbeSpec& probe) {
  return is_basic(probe) || probe.kind == ProbeKind::training || probe.kind == ProbeKind::instances;
}

}  // namespace mlenv::compare
