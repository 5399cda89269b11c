#pragma once
// What a run wrote, kept so that another one can go on from it: `mlenv run --keep`, `docker
// commit`.
#include "runner/compare/probes.hpp"

namespace mlenv::compare {

/// Of a container that wrote 32 MiB into its image. What was kept is removed again. Throws
/// `cannot-start` and what an engine's absence throws.
Found run_snapshot(const Bench& bench, const ActiveSide& side, std::chrono::milliseconds deadline,
                   StopSignals& signals);

}  // namespace mlenv::compare
