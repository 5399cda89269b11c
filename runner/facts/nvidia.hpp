#pragma once
// What NVIDIA's libraries and programs say, each by itself; `probe_nvidia` puts it together.
#include "runner/facts/sources.hpp"

namespace mlenv {

struct GpuAnswers {
  Text user_driver;
  Text cuda_version;
  Number cuda_status;
  Truth dma_buf;
  Fact<std::vector<Gpu>> gpus;
  Fact<std::vector<GpuPath>> paths;
  Fact<std::vector<MigDevice>> mig_devices;
};

/// Nothing known, for this reason.
GpuAnswers no_answers(const std::string& why);
/// `13.0` of 13000: CUDA's CUDA_VERSION, 1000 * major + 10 * minor.
std::string cuda_version(int version);
/// What a process that asked one of the libraries wrote; why there is nothing where it could not.
GpuAnswers answers_of(const Text& answer, const std::string& library);

/// libnvidia-ml.so.1 in this process: it may hang with the driver.
GpuAnswers ask_nvml();
/// libcuda.so.1, the same: `cuda_version`, `cuda_status` and `dma_buf` alone.
GpuAnswers ask_cuda();
/// nvidia-smi's tables.
GpuAnswers ask_nvidia_smi(const FactSources& from);

/// `nvidia-smi --query-gpu=…` as CSV, in the order of `kSmiFields`.
Fact<std::vector<Gpu>> gpus_of_csv(const Text& csv, bool with_capability);
/// The matrix of `nvidia-smi topo -m`.
Fact<std::vector<GpuPath>> paths_of_matrix(const Text& matrix);

}  // namespace mlenv
