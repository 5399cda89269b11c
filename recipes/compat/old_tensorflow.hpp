#pragma once
// TensorFlow 2.5 to 2.13: its wheels are for CUDA 11, name no package of it, and look for its
// libraries where the loader does (TensorFlow's install guide, "Tested build configurations", GPU
// on Linux; the extra `and-cuda` came with 2.14).
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// Whether a specifier set (PEP 440) allows such releases, and no later ones.
bool wants_old_tensorflow(std::string_view specifiers);
bool is_old_tensorflow(std::string_view version);

/// Whether a specifier set allows none but releases before 2.1, which have no `tensorflow-cpu`
/// beside them (1.15.0 apart): until 2.0 `tensorflow` is for the processor, and 1.15 does without a
/// GPU.
bool is_before_tensorflow_cpu(std::string_view specifiers);

/// The only major version that they use.
inline constexpr std::string_view kOldTensorflowCuda = "11";
/// What they load of CUDA, as requirements.
std::vector<std::string> old_tensorflow_libraries();

/// Below site-packages, where a package of NVIDIA's has its libraries: `nvidia/cublas/lib` of
/// `nvidia-cublas-cu11`; empty for any other.
std::string nvidia_library_folder(std::string_view package);

}  // namespace mlenv
