#pragma once
// What a node tells, as a text that is equal where nodes are alike.
#include "runner/job/agreement.hpp"

namespace mlenv::job {

/// `runc`; `none`
Text runtime_of(const NodeReport& node);
Text text_of(const Number& number);
/// `251 GB`: to three digits, so that what firmware keeps for itself makes no difference.
Text bytes_of(const Number& bytes);
/// `8 × NVIDIA H100 80GB HBM3`; `none`
Text models_of(const Facts& facts);
Text gpu_count_of(const Facts& facts);
/// Of the GPU with the least; unknown where there are none.
Text gpu_memory_of(const Facts& facts);
/// `on`, `off`, `on some`
Text mig_of(const Facts& facts);
/// `kernel 580.95.05, libraries 580.82.07`; `none`
Text mismatch_of(const Facts& facts);
/// Whether GPUs and network cards reach each other's memory.
Text gpu_direct_of(const Facts& facts);
bool has_active_port(const Facts& facts);
/// `8 active, 400 Gbit/s`; `none active`
Text ports_of(const Facts& facts);
/// Of the fastest interface of the host's own that is up: `25000 Mbit/s`.
Text speed_of(const NodeReport& node);

}  // namespace mlenv::job
