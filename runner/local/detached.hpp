#pragma once
// A run in the background: its supervisor is a process of its own session, without a terminal, that
// records it, keeps its output and lets other mlenvs talk to it. No daemon: it ends with the run.
#include <cstdint>
#include <optional>
#include <string>

#include "runner/local/run.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv {

struct DetachedRun {
  LocalRun run;    ///< without a terminal; `scratch` and `fds` are the supervisor's to fill
  RunStart start;  ///< as RunRecorder takes it
  fs::path store;
  std::uint64_t most_log_bytes = 0;
  int failure_status = 125;  ///< recorded where mlenv gives up
};

struct StartedRun {
  std::string id;                  ///< empty: the command was not started
  std::optional<RunOutcome> over;  ///< then: with which status, as a shell has it
};

/// Returns once the command runs. What is wrong before that is thrown, or told on our standard
/// error, as `run_local` does it.
StartedRun start_detached_run(const DetachedRun& run);

/// Its supervisor: main() calls this before any thread exists and returns its value when it is
/// engaged (`mlenv __supervise`). nullopt: this is an ordinary start.
std::optional<int> detached_main(int argc, char** argv);

}  // namespace mlenv
