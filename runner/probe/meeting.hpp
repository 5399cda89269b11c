#pragma once
// How the processes of an all-reduce on several nodes meet before NCCL does: rank 0 listens at
// MASTER_ADDR:MASTER_PORT, the others connect and say how many GPUs they have, and each is told
// its place among all GPUs and NCCL's unique id. One line from a rank, `mlenv-gpu-probe JOB RANK
// GPUS`; one answer, kAnswerBytes. Whoever says anything else is turned away.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace mlenv::probe {

/// One process of them, on a node of its own.
struct Seat {
  int rank = 0;
  int world = 1;
  std::string address;  ///< of rank 0: numbers or a name
  std::string port;
  std::string job;  ///< what tells this job's ranks from others; without spaces
};
/// Of RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and MLENV_JOB, as jobs have them (docs/jobs.md).
/// Throws std::invalid_argument for what is not there, or is none.
Seat seat_from_environment();

/// ncclUniqueId (nccl.h, NCCL_UNIQUE_ID_BYTES).
constexpr std::size_t kUniqueIdBytes = 128;
using UniqueId = std::array<char, kUniqueIdBytes>;

struct Roll {
  UniqueId id{};
  int gpus_before = 0;  ///< of the ranks before this one
  int gpus = 0;         ///< of all
};

/// Returns once all have met: to rank 0 with `id`, which is its own and nobody else's is looked at.
/// Throws std::runtime_error, naming the ranks that did not come within `patience`.
Roll call_roll(const Seat& seat, int gpus, const UniqueId& id, std::chrono::milliseconds patience);

}  // namespace mlenv::probe
