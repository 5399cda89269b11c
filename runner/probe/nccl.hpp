#pragma once
// NCCL by its documented C interface ("NCCL API"), from libnccl.so.2.
#include <vector>

#include "runner/probe/measure.hpp"

namespace mlenv::probe {

/// An all-reduce over all of them, from this one process (`Options::across`: and over those of the
/// other nodes' processes); sums are checked word by word on every rank of this process.
NcclReport reduce_over(const Cuda& cuda, const std::vector<Gpu>& gpus, const Options& options,
                       const Doing& doing);

/// `2.28.3` of NCCL's number 22803; before 2.9 they had one digit less (2708).
std::string nccl_version(int number);

}  // namespace mlenv::probe
