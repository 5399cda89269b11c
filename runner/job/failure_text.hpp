#pragma once
// What went wrong first in an attempt, as a person reads it: the same wherever the controller runs.
#include <string>
#include <vector>

#include "runner/job/drive.hpp"

namespace mlenv::job {

/// `mlenv: first, rank 1 on node2 ended with status 1`, and below it, where there were several
/// ranks, the newest lines of that rank's log. Lines as they are printed; none: nothing failed.
std::vector<std::string> failure_text(const AttemptResult& attempt);

}  // namespace mlenv::job
