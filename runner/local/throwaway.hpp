#pragma once
// Mounts of a run that must change nothing of the person's: each writable one lies under a layer of
// its own, which goes with the run's scratch folder.
#include <vector>

#include "runner/local/run.hpp"

namespace mlenv {

/// `mounts` (job_mounts(run)) with throwaway layers over those that can be written, and without
/// what `run.fresh` names. For the stage: mounts are made in this process's namespace. What is
/// mounted below a source is not seen in the container. Throws `no-overlay`.
std::vector<Mount> under_throwaway_layers(const LocalRun& run, std::vector<Mount> mounts,
                                          bool user_xattr);

}  // namespace mlenv
