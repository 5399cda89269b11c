#pragma once
// What CUDA releases ask of a driver and which GPUs they can compile for, as data: each row as its
// source had it in November 2026.
#include <optional>
#include <span>
#include <string_view>

#include "recipes/compat/architecture.hpp"

namespace mlenv {

/// A CUDA toolkit and the Linux x86_64 driver that its first release shipped (NVIDIA's CUDA Toolkit
/// release notes, "CUDA Driver"): this driver and later ones run all of it, PTX included.
struct CudaRelease {
  std::string_view release;  ///< `12.6`
  std::string_view driver;   ///< `560.28.03`
};
/// Newest first.
std::span<const CudaRelease> cuda_releases();

/// The driver that came with a release; empty when mlenv does not know it.
std::string_view cuda_driver(std::string_view release);

/// Oldest Linux driver that runs a major version by minor-version compatibility: machine code, not
/// PTX (CUDA Compatibility guide, "Minor Version Compatibility"); empty when mlenv does not know
/// it.
std::string_view cuda_driver_floor(std::string_view major);

/// Whether this release's compiler can make code for the GPU, machine code or (for GPUs newer than
/// the release) PTX that the GPU's driver compiles. nullopt: mlenv does not know the release or the
/// architecture.
std::optional<Coverage> most_coverage(std::string_view release, const DeviceCode& gpu);

/// Whether the PyPI packages of this release hold nvcc: those of CUDA 11 and 12 hold ptxas alone
/// (seen in nvidia-cuda-nvcc-cu12 12.6.85, 12.8.93, 12.9.86 and nvidia-cuda-nvcc 13.0.88, 13.5.37).
bool wheels_hold_nvcc(std::string_view release);

}  // namespace mlenv
