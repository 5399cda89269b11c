#pragma once
// The GPUs of a node that the ranks of a job there get.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runner/cdi/gpus.hpp"
#include "runner/cdi/spec.hpp"

namespace mlenv::job {

/// What a controller asks of each node. All ranks of a node see the same GPUs, and choose by
/// LOCAL_RANK, as the field's launchers have it: GPUs that are given one by one do not see their
/// peers.
inline constexpr std::string_view kGpusIfAny = "auto";  ///< all, and none where there is none

/// What `word` (kGpusIfAny, or one of `--gpus`; empty: none) asks for: kGpusIfAny is all. Throws
/// `usage`.
GpuChoice asked_gpus(std::string_view word);

/// The choice that it is on a node with these
/// variables: a batch system that has given this step some of the GPUs says which (SLURM_STEP_GPUS,
/// SLURM_JOB_GPUS: as the node counts them; else CUDA_VISIBLE_DEVICES), and `auto`, `all` and a
/// number mean those. Throws `usage`, and `no-device` for more than were given.
GpuChoice node_choice(std::string_view word, const std::map<std::string, std::string>& variables);

/// So many a batch system has given, by these variables; nothing: it says nothing of GPUs.
std::optional<std::uint64_t> given_gpus(const std::map<std::string, std::string>& variables);

struct NodeGpus {
  std::vector<CdiName> names;
  CdiEdits edits;
};
/// The devices of that choice here. Throws `no-device`, `bad-cdi`, `usage`.
NodeGpus node_gpus(std::string_view word);

}  // namespace mlenv::job
