#pragma once
// Watches a run that goes on, from outside: it changes nothing there, and costs it nothing.
#include <functional>
#include <set>

#include "base/handle.hpp"
#include "runner/watch/answer.hpp"
#include "runner/watch/proc.hpp"

namespace mlenv::watch {

/// A process in whose PID namespace the run's processes are, and no others. This is all that
/// watching needs of a runtime.
struct Anchor {
  Fd ended;  ///< readable once it has (pidfd_open(2))
  pid_t process = 0;
  std::string space{};  ///< the namespace's name, `pid:[4026531836]`; empty: the process shows it
};
/// Asked at first and whenever the last one has ended; nullopt: none at this moment, as between two
/// attempts.
using FindAnchor = std::function<std::optional<Anchor>()>;

/// Of a run of the built-in runtime: its stage tells. Throws `permission` where the run is somebody
/// else's, `run-unseen` where its processes cannot be seen from here.
std::optional<Anchor> anchor_of_run(const fs::path& run_folder, std::string_view id);

class Watcher {
 public:
  /// `devices`: those of the run, by their CDI names.
  Watcher(FindAnchor find_anchor, std::vector<std::string> devices);
  /// To be called several times between two samples.
  void look();
  /// What the run used since the last call; nullopt: there was none, or nothing runs.
  std::optional<Sample> sample();
  /// What it was started with, as far as it may be seen; empty before the first sample.
  const std::vector<std::string>& environment() const { return environment_; }

 private:
  bool refresh();
  void follow_threads(const Counters& before, const Counters& now);

  FindAnchor find_anchor_;
  std::vector<std::string> devices_;
  ProcReader proc_;
  GpuReader gpus_;
  std::optional<Anchor> anchor_;
  std::vector<pid_t> processes_;
  std::optional<Counters> before_;
  std::vector<Look> looks_;
  std::set<ThreadName> leading_;
  std::map<ThreadName, double> worked_;  ///< lately: what is longer ago counts less
  std::vector<std::string> environment_;
};

}  // namespace mlenv::watch
