#pragma once
// Parts of a matrix of jobs (`--matrix` with `--nodes` or `--engine`) that all engines have.
#include <vector>

#include "cli/run_job.hpp"
#include "cli/run_matrix_results.hpp"
#include "runner/job/variations.hpp"
#include "runner/matrix/matrix_file.hpp"

namespace mlenv::cli {

/// The job of `job.matrix` as the files of a matrix know one.
MatrixJob matrix_job(const PreparedJob& job);

/// One variation's job, its folder made. `run`: what all of them share.
job::JobVariation job_variation(const JobMatrix& matrix, const LocalRun& run,
                                const OpenedMatrix& opened, std::size_t index);

/// How a machine's or a cluster's hosts are divided: so many variations at once.
struct HostShare {
  std::size_t at_once = 1;
  std::vector<std::vector<job::Host>> hosts;  ///< of each that runs at once; empty: no ssh
};
/// Of ssh each has `nodes` hosts or more, none of them another's; as many at once as that allows,
/// or as `at_once` says. Without hosts one after another, or `at_once`. Throws `usage` where there
/// are too few for `at_once`.
HostShare divide_hosts(const std::vector<job::Host>& hosts, std::uint64_t nodes,
                       std::optional<std::size_t> at_once, std::size_t variations);

/// As run_job_matrix(), with controllers of our own: engines local and ssh.
int run_matrix_beside(Ui& ui, PreparedJob job);

/// What a dry run shows of the variations.
struct ShownVariation {
  std::uint64_t number = 1;
  std::string values;  ///< `lr=0.1 seed=3`
  std::vector<std::string> argv;
};
std::vector<ShownVariation> shown_variations(const PreparedJob& job);

std::string nodes_text(const job::NodeCount& nodes);

}  // namespace mlenv::cli
