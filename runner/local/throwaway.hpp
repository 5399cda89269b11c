#pragma once
// Mounts of a run that must change nothing of the person's: each writable one lies under a layer of
// its own, which goes with the run's scratch folder.
#include <vector>

#include "runner/local/run.hpp"

namespace mlenv {

/// What all of a run's layers lie in.
fs::path throwaway_mounts_folder(const fs::path& scratch);

/// What stands in for one of them.
struct ThrowawayLayer {
  fs::path source;  ///< to be mounted as it is; below `upper` where that is not empty
  fs::path upper;   ///< where overlayfs is to put what is written
  fs::path work;    ///< its own, beside that
  std::vector<FreshPath> fresh{};  ///< for clear_fresh, once it is mounted
};
/// Of that one of job_mounts(run): its folders are made; nothing is mounted.
ThrowawayLayer throwaway_layer(const LocalRun& run, std::size_t index, const fs::path& source);
/// Removes it below the mounted layer's `root`. No link is followed on the way: behind it the
/// person's own files may lie. `shown`: for errors.
void clear_fresh(Fd root, const fs::path& shown, const FreshPath& fresh);

/// `mounts` (job_mounts(run)) with throwaway layers over those that can be written, and without
/// what `run.fresh` names. For the stage: mounts are made in this process's namespace. What is
/// mounted below a source is not seen in the container. Throws `no-overlay`.
std::vector<Mount> under_throwaway_layers(const LocalRun& run, std::vector<Mount> mounts,
                                          bool user_xattr);

}  // namespace mlenv
