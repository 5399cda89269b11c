#pragma once
// An array of Slurm's, each of whose jobs is a variation of a matrix, followed from outside: their
// states where they change, their records as they come, signals passed on.
#include <set>
#include <string>
#include <vector>

#include "cli/run_matrix_keeper.hpp"
#include "runner/local/signal_queue.hpp"

namespace mlenv::cli {

struct FollowedArray {
  std::string id;   ///< Slurm's
  fs::path folder;  ///< of the jobs (runner/job/job_folders.hpp)
  std::vector<std::size_t> variations;
  bool fail_fast = false;  ///< one that fails ends all
};

struct ArrayEnd {
  int signal = 0;     ///< that ended it; 0: none
  bool left = false;  ///< SIGHUP came, or Slurm does not tell its end: nobody follows it any more
};

/// To the end of all of them. SIGUSR1 and SIGUSR2 are passed on to the ranks; SIGINT, SIGTERM and
/// SIGQUIT cancel the array, and the second time kill what is left of it. Throws `no-slurm` where
/// Slurm does not answer for ten minutes.
ArrayEnd follow_array(Ui& ui, const FollowedArray& array, MatrixKeeper& keeper,
                      const SignalQueue& signals);

/// Notes beside the results which array works on them; and takes the note away.
void note_array(const fs::path& results, const FollowedArray& array);
void forget_array(const fs::path& results) noexcept;
/// The one that is noted there, with the variations that Slurm still has of it; without any, or
/// where none is noted, it has none. Throws `no-slurm` where nobody answers.
FollowedArray array_at(const fs::path& results, const fs::path& store);

}  // namespace mlenv::cli
