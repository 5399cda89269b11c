#pragma once
// A job as a batch script of Slurm's: what `mlenv run --engine slurm` submits and `mlenv export
// slurm` shows. A plain function of its arguments.
#include <chrono>
#include <string>
#include <vector>

#include "runner/job/job.hpp"

namespace mlenv::job {

struct SlurmScript {
  std::string name;    ///< of the job in Slurm's lists
  std::string output;  ///< file for what the job prints, on storage that the nodes share
  /// Words for sbatch that are the site's affair: `--partition=gpu`, `--account=lab`.
  std::vector<std::string> site;
  std::vector<std::string> command;  ///< what the script becomes, on the first node
  /// Of many jobs by this script: `1-4%2` (slurm_array.hpp). Empty: it is one.
  std::string array{};
  std::string output_of_task{};  ///< behind `output`, with Slurm's patterns: `.%a/out`
};

/// How long before the end of its time a job hears SIGTERM: for a last checkpoint. At least a
/// minute; where ranks have longer than that to end (`Job::grace`), that and what it takes to clear
/// up after them.
std::chrono::seconds slurm_warning(const Job& job);

/// Directives from nodes, GPUs, limits and deadline of the job, then the command. Throws `bad-job`
/// (usage) for what a directive cannot hold.
std::string slurm_script(const Job& job, const SlurmScript& script);

/// What a job of so many tasks on each node asks for: nodes, processors, memory, GPUs, time.
std::vector<std::string> slurm_resources(const Job& job, std::uint64_t tasks_per_node);
/// `#SBATCH WORD`, a line. Throws `bad-job` (usage) for what a directive cannot hold.
std::string slurm_directive(const std::string& word);
/// As Slurm's lists show a job.
std::string slurm_name(std::string name);

/// One word for a POSIX shell, with quotes where it needs them.
std::string shell_word(const std::string& word);

}  // namespace mlenv::job
