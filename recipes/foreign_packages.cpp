#include "recipes/foreign_packages.hpp"

#include <array>

namespace mlenv {
namespace {

/// What only the archives of other makers have, by how it begins.
struct ForeignPackage {
  std::string_view begin;
  std::string_view why;
};
constexpr std::string_view kOfNvidia =
    "of NVIDIA's archive: CUDA's libraries come with the wheels, `libraries: {nvcc: true}` brings "
    "the compiler";
constexpr std::array<ForeignPackage, 29> kForeign = {{{"cuda", kOfNvidia},
                                                      {"libcudnn", kOfNvidia},
                                                      {"libnccl", kOfNvidia},
                                                      {"libnvinfer", kOfNvidia},
                                                      {"libcublas", kOfNvidia},
                                                      {"libcusparse", kOfNvidia},
                                                      {"libcufft-", kOfNvidia},
                                                      {"libcurand-", kOfNvidia},
                                                      {"libcusolver-", kOfNvidia},
                                                      {"libnpp-", kOfNvidia},
                                                      {"tensorrt", kOfNvidia},
                                                      {"python3-libnvinfer", kOfNvidia},
                                                      {"nvidia-cudnn", kOfNvidia},
                                                      {"nvidia-cuda-", kOfNvidia},
                                                      {"nvidia-container", kOfAnotherMaker},
                                                      {"google-cloud", kOfAnotherMaker},
                                                      {"google-chrome", kOfAnotherMaker},
                                                      {"docker-ce", kOfAnotherMaker},
                                                      {"containerd.io", kOfAnotherMaker},
                                                      {"docker-compose-plugin", kOfAnotherMaker},
                                                      {"docker-buildx-plugin", kOfAnotherMaker},
                                                      {"azure-cli", kOfAnotherMaker},
                                                      {"kubectl", kOfAnotherMaker},
                                                      {"terraform", kOfAnotherMaker},
                                                      {"msodbcsql", kOfAnotherMaker},
                                                      {"intel-oneapi", kOfAnotherMaker},
                                                      {"intel-mkl", kOfAnotherMaker},
                                                      {"rocm-", kOfAnotherMaker},
                                                      {"gcsfuse", kOfAnotherMaker}}};
}  // namespace

std::string_view why_foreign_package(std::string_view name) {
  for (const ForeignPackage& one : kForeign) {
    if (name.starts_with(one.begin)) return one.why;
  }
  return {};
}

}  // namespace mlenv
