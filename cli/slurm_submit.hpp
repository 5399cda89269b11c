#pragma once
// What is submitted to Slurm: of one job, and of an array of many.
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "cli/run_job.hpp"
#include "runner/job/plan_file.hpp"
#include "runner/launch/slurm_script.hpp"

namespace mlenv::cli {

/// Of a command that SIGHUP ended.
constexpr int kHungUp = 128 + 1;

/// Where all nodes find mlenv-node: in the store, under its digest.
fs::path shared_program(const fs::path& store);
/// Puts it there.
void make_shared_program(const fs::path& path);

/// The batch script of a job whose folder is `folder`; `words` of sbatch, before those of the site.
job::SlurmScript batch_script(const PreparedJob& job, const fs::path& folder,
                              const fs::path& program, std::vector<std::string> words);
/// Shows it with what its controller would be given, and does nothing; the status.
int show_script(const Ui& ui, const PreparedJob& job, const std::string& text);

/// Takes the code, and what `job` holds.
job::PlanFile slurm_plan(Ui& ui, PreparedJob& job, const fs::path& store);
/// Digests of what must be in the store when its turn comes.
std::vector<std::string> needs_of(const job::DrivePlan& plan);

/// Cancels what Slurm has taken (`job 5`: `what` and `id`) and nothing here knows of; `error` with
/// what became of it.
Error taken_back(Error error, std::string_view what, const std::string& id);

/// A matrix (`job.matrix`) as one array, followed to its end, or with `-d` left there; the status.
int run_matrix_in_slurm(Ui& ui, PreparedJob job);

}  // namespace mlenv::cli
