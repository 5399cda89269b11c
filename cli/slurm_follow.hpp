#pragma once
// A job of Slurm's, followed from outside: its output as it grows, its state where that changes,
// signals passed on.
#include <optional>
#include <string>

#include "cli/ui.hpp"
#include "runner/launch/slurm_job.hpp"
#include "runner/local/signal_queue.hpp"

namespace mlenv::cli {

struct SubmittedJob {
  std::string id;   ///< Slurm's
  fs::path folder;  ///< of the job (runner/job/job_folders.hpp)
  fs::path store;
};

/// To its end, or nothing where SIGHUP came first: then the job goes on by itself. SIGUSR1 and
/// SIGUSR2 are passed on to the ranks, SIGINT, SIGTERM and SIGQUIT cancel it. Throws `no-slurm`.
std::optional<job::SlurmState> follow_in_slurm(const Ui& ui, const SubmittedJob& job,
                                               const SignalQueue& signals);

}  // namespace mlenv::cli
