#pragma once
// Errors of CUDA that people run into: their names, what they mean for a driver that answers with
// them when it is started, and what helps. For the probe, and for the rules of runner/check.
#include "runner/probe/report.hpp"

namespace mlenv::probe {

/// CUresult of the driver API; 35 is the runtime's cudaErrorInsufficientDriver, which stubs and
/// shims of the driver answer, too.
using Status = int;

/// What is known to help; empty: nothing.
const char* advice_for(Status status);
/// CUDA's name, which a driver need not know itself: `CUDA_ERROR_NO_DEVICE`; empty for others.
const char* known_name(Status status);
/// What it means that cuInit, or the question how many GPUs there are, ends with the error.
Verdict verdict_for(Status status);

}  // namespace mlenv::probe
