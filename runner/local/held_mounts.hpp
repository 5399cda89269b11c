#pragma once
// What a run mounts stays what it was when it was first looked up. A source may lie where the run's
// own programs write — in the project — and they may put a link in its place: neither the next
// attempt of the run nor the next variation of the command follows it.
#include <sys/types.h>
#include <map>
#include <vector>

#include "runner/local/run.hpp"

namespace mlenv {

/// Sources of mounts, the project among them, as the first of several runs of one command finds
/// them. Links in what the person named are followed then, and not again.
class SettledSources {
 public:
  /// Looks up those that are new and not settled yet. Not the results of a variation
  /// (own_results.hpp).
  void find(const LocalRun& run);
  /// The known ones of `run` are mounted from where they were found (`LocalRun::settled`).
  void apply(LocalRun& run) const;

 private:
  std::map<fs::path, fs::path> found_;
};

/// For one run alone.
void settle(LocalRun& run);

/// Whether that source is one of `run.settled`.
bool is_settled(const LocalRun& run, const fs::path& source);

/// For who has somebody else mount `mounts` (job_mounts(run)), a moment before: throws
/// `mount-changed` where a link is in the way of one of `run.settled`.
void require_settled(const LocalRun& run, const std::vector<Mount>& mounts);

/// For who mounts here, in a mount namespace of its own, something over the source: one of
/// `run.settled` is bound at `place`, which is made, and that is the source then. Throws the same.
void bind_settled(const LocalRun& run, Mount& mount, const fs::path& place);

/// Sources of a run here, bound in this process's own mount namespace, so that the runtime looks up
/// none of them by its name.
class HeldMounts {
 public:
  /// Puts the places below `folder`, which is made, as sources into `mounts`, whose last ones are
  /// job_mounts(run). Throws `mount-changed` as above, and `bad-mount`.
  void hold(const LocalRun& run, std::vector<Mount>& mounts, fs::path folder);
  /// Before another attempt: what a program has made anew is mounted as it is now. Throws
  /// `mount-changed` where it is reached by a link, or is gone.
  void renew(std::vector<Mount>& mounts);
  /// `mounts` by the paths at which their sources lie.
  std::vector<Mount> named(std::vector<Mount> mounts) const;

 private:
  struct Held {
    fs::path real;  ///< without links
    dev_t device = 0;
    ino_t inode = 0;
    fs::path place;
  };
  void bind(const Fd& fd, Held& held, Mount& mount);

  fs::path folder_;
  std::size_t first_ = 0;  ///< of the mounts that are held
  std::size_t places_ = 0;
  std::vector<Held> held_;
};

}  // namespace mlenv
