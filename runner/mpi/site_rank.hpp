#pragma once
// A run that is a rank: the site's own mpirun or srun starts an mlenv for each (`srun --mpi=pmix
// mlenv run IMAGE -- prog`), and the program in the container finds the others by what its launcher
// set in the variables.
#include <optional>
#include <string>
#include <vector>

#include "runner/local/run.hpp"
#include "runner/mpi/launch_words.hpp"

namespace mlenv::mpi {

struct SiteRank {
  RankPlace place;
  /// It talks to its launcher by a descriptor (PMI_FD: PMI-1, PMI-2), which no container has: to
  /// MPI each rank is then alone.
  bool alone = false;
  std::vector<std::string> variables;  ///< names that are passed on
  std::vector<std::string> folders;    ///< of its session, that ranks of a node share
};
/// nullopt: nobody started it as a rank (neither PMIX_RANK nor PMI_RANK is set).
std::optional<SiteRank> site_rank(const Environment& caller);

/// Gives the run what MPI needs: variables of the launcher (OMPI_, PMIX_, PMI_, PRTE_, SLURM_),
/// RANK and its like, its session's folders and the host's /dev/shm. What the run sets itself comes
/// over it. Throws `usage` where the run has a network other than the host's.
void join_site(const SiteRank& rank, LocalRun& run);

/// What the first of several ranks says of it; empty: nothing.
std::string site_note(const SiteRank& rank);

}  // namespace mlenv::mpi
