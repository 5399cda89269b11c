#pragma once
// The folder of a variation's results (`mlenv run --matrix`), which mlenv made where other runs may
// write: in the project. What is mounted is that folder, not where a link leads that one of them
// put in its place meanwhile.
#include <vector>

#include "runner/local/run.hpp"

namespace mlenv {

/// Of job_mounts(run), for who mounts here: results below what the run itself may write to are
/// opened without links, and bound at `place`, which is made. Other mounts stay as they are.
/// Throws `matrix-exists` where something else is in their place.
std::vector<Mount> with_own_results(const LocalRun& run, std::vector<Mount> mounts,
                                    const fs::path& place);

/// Whether that is one of job_mounts(run) which mlenv made for a variation.
bool is_own_results(const LocalRun& run, const Mount& mount);

/// For who has somebody else mount them: throws the same, a moment before.
void require_own_results(const LocalRun& run, const std::vector<Mount>& mounts);

}  // namespace mlenv
