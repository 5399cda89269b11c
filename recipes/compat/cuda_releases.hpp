#pragma once
// What CUDA releases ask of a driver and which GPUs they can compile for. The data is
// recipes/compat/cuda.toml, each row with its source; releases that came later may be added to it
// by `mlenv data update`, which changes no answer about those that stand there. Whatever is handed
// out holds until the process ends.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "recipes/compat/architecture.hpp"
#include "recipes/compat/cuda_table.hpp"

namespace mlenv {

/// A CUDA toolkit and the Linux x86_64 driver that its first release shipped (NVIDIA's CUDA Toolkit
/// release notes, "CUDA Driver"): this driver and later ones run all of it, PTX included.
struct CudaRelease {
  std::string_view release;               ///< `12.6`
  std::string_view driver;                ///< `560.28.03`
  std::vector<std::string_view> updates;  ///< drivers of 12.6.1, 12.6.2, …; oldest first
};
/// Newest first.
std::span<const CudaRelease> cuda_releases();

/// The file of an update in mlenv's data folder.
inline constexpr std::string_view kCudaDataFile = "cuda.toml";
/// Says once, before the first question, where that folder is; it is asked for when the table is
/// first needed. Without it, and where the file is absent, damaged, older than the built-in data or
/// contradicts it, the built-in data is used.
void look_for_cuda_data(std::function<fs::path()> folder);

/// What the answers come from.
struct CudaDataOrigin {
  fs::path file;            ///< the update; empty: the built-in data
  std::string passed_over;  ///< why a file that is there is not used; empty where there is none
};
const CudaDataOrigin& cuda_data_origin();
const CudaTable& cuda_table();

/// The driver that came with a release; empty when mlenv does not know it.
std::string_view cuda_driver(std::string_view release);

/// Oldest Linux driver that runs the machine code, not PTX, of a release or of any of a major
/// version: from 11 on by minor-version compatibility (CUDA Compatibility guide, "Minor Version
/// Compatibility"), before it the release's own. Empty when mlenv does not know it.
std::string_view cuda_driver_floor(std::string_view release);
/// Whether drivers of a major version run all its releases.
bool has_minor_compatibility(std::string_view release);

/// Whether this release's compiler can make code for the GPU, machine code or (for GPUs newer than
/// the release) PTX that the GPU's driver compiles. nullopt: mlenv does not know the release or the
/// architecture.
std::optional<Coverage> most_coverage(std::string_view release, const DeviceCode& gpu);

/// Whether the PyPI packages of this release hold nvcc: those of CUDA 11 and 12 hold ptxas alone
/// (seen in nvidia-cuda-nvcc-cu12 12.6.85, 12.8.93, 12.9.86 and nvidia-cuda-nvcc 13.0.88, 13.5.37).
bool wheels_hold_nvcc(std::string_view release);

}  // namespace mlenv
