#pragma once
// What a run wrote, kept so that another one can go on from it: `mlenv run --keep`, `docker
// commit`.
#include "runner/compare/probes.hpp"

namespace mlenv::compare {

/// Of a container that wrote 32 MiB into its image. What was kept is removed again. Throws
/// `cannot-start` and what an engine's absence throws.
Found run_snapshot(const Bench& bench, const ActiveSide& side, std::chrono::milliseconds deadline,
                   StopSignals& signals);

/// What tells this user's comparisons with this store on this host from all others, as engines may
/// serve many.
std::string snapshots_label(const fs::path& store);
/// Removes the images with it that a comparison left which was killed meanwhile. Whoever calls it
/// is the only comparison with the store.
void remove_snapshots(const std::string& engine, const std::string& label);

}  // namespace mlenv::compare
