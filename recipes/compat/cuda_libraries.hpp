#pragma once
// The libraries that frameworks bring along as Python packages of NVIDIA's, by the names that
// people know them by (package names as the Python index had them in November 2026).
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

struct CudaLibrary {
  std::string_view name;     ///< in a recipe: `cudnn`
  std::string_view shown;    ///< in messages: `cuDNN`
  std::string_view package;  ///< `nvidia-cudnn`
  bool always_suffixed;      ///< `-cu13` too; else the name has no suffix from CUDA 13 on
};
std::span<const CudaLibrary> cuda_libraries();
/// nullptr for an unknown name.
const CudaLibrary* find_cuda_library(std::string_view name);

/// Its package for every CUDA major that mlenv knows: `nvidia-cudnn-cu11`, …
std::vector<std::string> packages_of(const CudaLibrary& library);
bool is_package_of(const CudaLibrary& library, std::string_view package);

}  // namespace mlenv
