#pragma once
// What becomes of programs that `run_captured` waits for when a signal ends this process.

namespace mlenv {

/// Ends them, and what they started. They have groups of their own, so that Ctrl-C does not reach
/// them. For a signal handler whose process is to end.
void end_captured() noexcept;

}  // namespace mlenv
