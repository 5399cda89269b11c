#pragma once
// Ctrl-C and SIGTERM while something long is being made.

namespace mlenv::cli {

/// While it lives, SIGINT and SIGTERM end the process as they always do, with one line on stderr
/// before: what is finished is kept, so the same command goes on from there. Programs that mlenv
/// waits for (uv, git, credential helpers) end with it. A signal that was ignored before (nohup)
/// stays ignored. One at a time in a process; not while a job runs, which gets its signals itself.
class Interruption {
 public:
  /// `quiet`: without the line.
  explicit Interruption(bool quiet);
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();
};

}  // namespace mlenv::cli
