#include "recipes/compat/cuda_libraries.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace mlenv {
namespace {

constexpr std::array<CudaLibrary, 15> kLibraries = {
    {{"cublas", "cuBLAS", "nvidia-cublas", false},
     {"cudart", "the CUDA runtime", "nvidia-cuda-runtime", false},
     {"cudnn", "cuDNN", "nvidia-cudnn", true},
     {"cufft", "cuFFT", "nvidia-cufft", false},
     {"cufile", "cuFile", "nvidia-cufile", false},
     {"cupti", "CUPTI", "nvidia-cuda-cupti", false},
     {"curand", "cuRAND", "nvidia-curand", false},
     {"cusolver", "cuSOLVER", "nvidia-cusolver", false},
     {"cusparse", "cuSPARSE", "nvidia-cusparse", false},
     {"cusparselt", "cuSPARSELt", "nvidia-cusparselt", true},
     {"nccl", "NCCL", "nvidia-nccl", true},
     {"nvjitlink", "nvJitLink", "nvidia-nvjitlink", false},
     {"nvrtc", "NVRTC", "nvidia-cuda-nvrtc", false},
     {"nvshmem", "NVSHMEM", "nvidia-nvshmem", true},
     {"nvtx", "NVTX", "nvidia-nvtx", false}}};

}  // namespace

std::span<const CudaLibrary> cuda_libraries() { return kLibraries; }

const CudaLibrary* find_cuda_library(std::string_view name) {
  const auto* found = std::find_if(kLibraries.begin(), kLibraries.end(),
                                   [&](const CudaLibrary& one) { return one.name == name; });
  return found == kLibraries.end() ? nullptr : found;
}

std::vector<std::string> packages_of(const CudaLibrary& library) {
  std::vector<std::string> packages;
  for (const int major : {11, 12})
    packages.push_back(fmt::format("{}-cu{}", library.package, major));
  packages.push_back(library.always_suffixed ? fmt::format("{}-cu13", library.package)
                                             : std::string(library.package));
  return packages;
}

bool is_package_of(const CudaLibrary& library, std::string_view package) {
  const std::vector<std::string> all = packages_of(library);
  return std::find(all.begin(), all.end(), package) != all.end();
}

}  // namespace mlenv
