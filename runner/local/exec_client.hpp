#pragma once
// A command in a run that goes on, and the end of such a run: this side of the socket.
#include "runner/local/control.hpp"
#include "runner/local/life.hpp"

namespace mlenv {

/// Runs it with our streams (`input`: standard input too, else it has none), or, where the request
/// wants a terminal, with one of its own that shows on ours; signals sent to us reach it, and it
/// ends when we are killed. Its status: 126, 127 and 128+n as run_local has them. Throws
/// `run-ended`, `permission`, `bad-workdir` (usage), `run-failed`.
Exit exec_in_run(const fs::path& run_folder, std::string_view id, ExecRequest request, bool input);

/// Asks for its end; returns when that has begun. Throws `run-ended` and `permission`.
void stop_run(const fs::path& run_folder, std::string_view id, const StopRequest& request);

}  // namespace mlenv
