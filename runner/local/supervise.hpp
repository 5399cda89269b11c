#pragma once
// One container's life under an OCI runtime, watched over by the stage.
#include "runner/local/namespaces.hpp"
#include "runner/local/run.hpp"
#include "runner/local/runtime.hpp"

namespace mlenv {

class LimitGroup;

struct Watch {
  int signals = -1;                    ///< a signalfd: what arrives there is for the job
  int socket = -1;                     ///< when its other end closes, the job is to end
  const LimitGroup* limits = nullptr;  ///< the container begins in it; may be absent
};

/// Runs the bundle to its end with our standard streams and returns how the job ended. Every
/// process in `processes` is killed then, and the container's cgroups are removed. Throws
/// `run-failed`.
///
/// Without a terminal the runtime is asked to start the job and leave: streams are the job's own
/// (the runtime would put pipes between), and nothing but this process is left beside it. With a
/// terminal the runtime stays, as the master of the job's pseudo-terminal.
JobEnd supervise(const Runtime& runtime, const Container& container, PidNamespace& processes,
                 const Watch& watch);

}  // namespace mlenv
