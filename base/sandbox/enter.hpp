#pragma once
// Getting from the host into the tree: namespaces, mounts, device nodes; and leaving no trace of
// it.
#include <string>
#include <vector>

#include "base/handle.hpp"
#include "base/sandbox/plan.hpp"

namespace mlenv::sandbox {

/// Puts the calling (single-threaded) process into its own namespaces, as user 0 there; its next
/// child is process 1. With `network` the host's network stays. Throws `sandbox-failed`.
void enter_namespaces(bool network);
/// Stacks the overlay for this mount namespace alone and returns its root. Throws `no-overlay`.
fs::path stack(const Overlay& overlay);

/// Things put into the tree for the run.
class Scaffold {
 public:
  /// `outside` sees the tree without anything mounted on it.
  explicit Scaffold(int outside) : outside_(outside) {}
  /// Makes `command.root` the root of the calling process, with /proc, a small /dev and the mounts.
  void build(const SandboxCommand& command, Way way);
  /// /proc of the processes in the sandbox, open as O_PATH.
  Fd take_proc() { return std::move(proc_); }
  /// Takes away the mount points and device nodes that were not there before.
  void remove();

 private:
  struct Part {
    Fd tree;  ///< a mount not yet attached
    std::string target;
  };
  Part clone(const std::string& source, std::string target, bool read_only);
  std::vector<Part> prepare(const SandboxCommand& command);
  void attach(const Part& part);
  void make_target(const std::string& target, bool folder);
  void note_made(const std::string& path);
  void hide(const std::string& path);
  void make_devices();
  void place_secrets(const std::map<std::string, std::string>& secrets);

  int outside_;
  Fd proc_;
  std::vector<std::string> made_;  // paths within the root, outermost first
};

}  // namespace mlenv::sandbox
