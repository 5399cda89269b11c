#pragma once
// Parts of a matrix of jobs (`--matrix` with `--nodes` or `--engine`) that all engines have.
#include <vector>

#include "cli/run_job.hpp"
#include "runner/job/variations.hpp"
#include "runner/matrix/matrix_file.hpp"

namespace mlenv::cli {

/// The job of `job.matrix` as the files of a matrix know one.
MatrixJob matrix_job(const PreparedJob& job);

/// One variation's job, its folder made. `run`: what all of them share.
job::JobVariation job_variation(const JobMatrix& matrix, const LocalRun& run,
                                const matrix::MatrixRecord& record, std::size_t index);

}  // namespace mlenv::cli
