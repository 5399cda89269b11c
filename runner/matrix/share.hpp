#pragma once
// How the machine is divided among variations that run side by side.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/cdi/gpus.hpp"
#include "runner/local/options.hpp"

namespace mlenv::matrix {

/// What the machine has, as far as it is known.
struct Machine {
  double processors = 1;  ///< that we may use
  std::optional<std::uint64_t> memory_bytes;
  std::vector<CdiName> gpus;  ///< that may be given out, each by a name of its own
};

/// What was asked for.
struct Asked {
  std::size_t variations = 1;
  std::optional<std::size_t> at_once;  ///< of `--parallel`
  GpuChoice gpus;
  JobLimits limits;  ///< of each
};

struct Share {
  std::size_t at_once = 1;
  /// Of each that runs at once; empty: no GPUs are divided.
  std::vector<std::vector<CdiName>> gpus;
  bool gpus_are_shared = false;  ///< several have the same
  /// Processor threads that each may use; nothing where one runs alone.
  std::optional<unsigned> threads;
};

/// `--gpus N` gives each N of them, and without it each gets one, or `--parallel` says into how
/// many parts they go; `--gpus all` without `--parallel` is for one at a time. Without `--parallel`
/// as many run at once as GPUs, else `--cpus` and `--memory` allow; one where nothing says how
/// much each needs. More at once than GPUs share them, unless `--gpus N` forbids it. Throws `usage`
/// and `no-device` for what cannot be had.
Share divide(const Machine& machine, const Asked& asked);

/// Variables by which numeric libraries learn how many threads to use, `K=V`: with several runs
/// side by side each would take all processors. None where `set` (names) has OMP_NUM_THREADS, of
/// which others take theirs; without those that it has.
std::vector<std::string> thread_variables(unsigned threads, const std::vector<std::string>& set);

}  // namespace mlenv::matrix
