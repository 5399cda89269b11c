#pragma once
// How the program of a node comes to where it is absent: shell scripts for the node, whatever
// carries them there. It lies in the cache of the node's user under its own digest,
// `~/.cache/mlenv/node/SHA256/mlenv-node` (or in XDG_CACHE_HOME), for the next job as well.
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/process.hpp"

namespace mlenv::job {

class NodeProgram {
 public:
  /// The file on this machine. Throws `no-node` where it is absent.
  explicit NodeProgram(fs::path file);

  /// One word for a shell of the node: checks that it can run the program; takes it from standard
  /// input unless it has it, whole by its digest. What is wrong goes to standard error.
  const std::string& take_script() const { return take_; }
  /// Becomes the agent.
  const std::string& run_script() const { return run_; }
  /// The same for sshd, which gives it to the login shell of the user, whatever that is.
  static std::string for_any_shell(const std::string& script);

  struct Carried {
    Command command{Purpose{"node-agent"}};
    Fd program;  ///< the file as the command reads it: the offset says how far that is
  };
  /// Starts the agent through a command that runs its last word there as a shell does: brings the
  /// program first. `words` come before that word. The descriptor must live until it is started.
  Carried carried_by(const std::vector<std::string>& words, bool any_shell) const;

 private:
  fs::path file_;
  std::string take_;
  std::string run_;
};

}  // namespace mlenv::job
