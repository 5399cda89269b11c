#pragma once
// A process in the container, started as mlenv wants it.
#include "runner/engine/keeper/frames.hpp"

#include <sys/types.h>

namespace mlenv::keeper {

struct Terminal {
  int master = -1;
  int slave = -1;
};
/// 0, or errno; what was opened is the caller's to close.
int open_terminal(const StartHead& head, Terminal& terminal);

/// Of a frame `start`. The process id once its program runs; else -1, and `problem` is filled.
pid_t start_process(const Frame& frame, const Terminal& terminal, Failed& problem);

}  // namespace mlenv::keeper
