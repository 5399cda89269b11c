#pragma once
// A run in the background: its supervisor is a process of its own session, without a terminal, that
// records it, keeps its output and lets other mlenvs talk to it. No daemon: it ends with the run.
//
// One of several runs side by side (a matrix) has the same supervisor as a child of its own, which
// ends with whoever started it, even by `kill -9`.
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "runner/local/run.hpp"
#include "runner/local/supervised.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv {

struct DetachedRun {
  LocalRun run;    ///< without a terminal; `scratch` and `fds` are the supervisor's to fill
  RunStart start;  ///< as RunRecorder takes it
  fs::path store;
  std::uint64_t most_log_bytes = 0;
  std::string host{};                      ///< KnownState::host
  int failure_status = kOwnFailureStatus;  ///< recorded where mlenv gives up
};

struct StartedRun {
  std::string id;                  ///< empty: the command was not started
  std::optional<RunOutcome> over;  ///< then: with which status, as a shell has it
};

/// Returns once the command runs, or the run waits for others. What is wrong before that is thrown,
/// or told on our standard error, as `run_local` does it.
StartedRun start_detached_run(const DetachedRun& run);

/// A run beside others: recorded, its output kept, without standard input.
class AttachedRun : public Supervised {
 public:
  /// Starts the supervisor, and does not wait for the command.
  explicit AttachedRun(const DetachedRun& run);

  /// Bytes that the log lacks and says nothing of, since the disk is full. It grows, and is right
  /// once it is over.
  std::uint64_t lost_output() const { return lost_output_; }
  /// One that comes before the command runs waits until then.
  void signal(int number) final;

 private:
  bool take_own(const nlohmann::json& word) override;
  void on_started() override;

  std::uint64_t lost_output_ = 0;
  int waiting_signal_ = 0;
};

/// Its supervisor: main() calls this before any thread exists and returns its value when it is
/// engaged (`mlenv __supervise`). nullopt: this is an ordinary start.
std::optional<int> detached_main(int argc, char** argv);

}  // namespace mlenv
