#pragma once
// A process of ours between mlenv and what it measures: it starts all of it and ends it when mlenv
// is gone, however that came (a SIGKILL can be told to nobody). One is for commands of the bare
// host, one for `mlenv run`.
//
// It cannot end what others start for a command (systemd, at, a container engine), and nothing when
// it is killed itself.
#include <chrono>
#include <optional>

#include "base/process.hpp"

namespace mlenv::compare {

/// How something is ended that did not end by itself.
enum class Ending {
  kill,  ///< with all that it left behind, daemons too: they become the minder's (prctl(2),
         ///< PR_SET_CHILD_SUBREAPER)
  ask,   ///< by SIGTERM, and killed where it has not ended a moment later: it may take away first
         ///< what it made. What it left behind goes on: it is there to do so
};

class Minder {
 public:
  /// The environment, the folder and the processors of what it starts are ours at this time. What
  /// it starts can only read in the folder `read_only`, where there is one and this machine lets us
  /// have that (shield).
  explicit Minder(Ending ending, const fs::path& read_only = {});
  Minder(const Minder&) = delete;
  Minder& operator=(const Minder&) = delete;
  ~Minder();

  Ending ending() const { return ending_; }
  /// Why what it starts may write in `read_only`; empty: it may not.
  const std::string& unshielded() const { return unshielded_; }

  struct Begun {
    pid_t pid = -1;
    std::chrono::steady_clock::time_point at;  ///< before anything was done for it
  };
  /// argv, env, folder and the three streams of `command`, in a session of its own. Throws
  /// `cannot-start`.
  Begun start(const Command& command) const;

  /// Kills the group of what is still there, waits for its end and says how it ended. nullopt: the
  /// minder itself is gone.
  std::optional<Exit> end(pid_t pid) const;

 private:
  void begin(const fs::path& read_only);

  Ending ending_;
  std::string unshielded_;
  std::optional<Child> process_;
  Fd socket_;
};

/// The process itself; nullopt where these words do not mean it.
std::optional<int> minder_main(int argc, char** argv);

}  // namespace mlenv::compare
