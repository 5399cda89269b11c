#pragma once
// The status that a job ends with. Plain.
#include "runner/job/drive.hpp"

namespace mlenv::job {

/// Those whose end is the job's. Of MPI it is the launcher. With a chief it alone is: workers,
/// parameter servers and the evaluator serve it for ever.
bool is_essential(const Rank& rank, const Job& job);

/// JobOutcome::exit_code of all else in it. `between`: it was told to end when its last attempt was
/// over and the next had not begun.
int status_of(const JobOutcome& outcome, const Job& job, bool between);

}  // namespace mlenv::job
