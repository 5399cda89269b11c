#pragma once
// For which CUDA major versions and Pythons releases of frameworks were built at all (PyTorch's
// "Previous Versions", TensorFlow's "Tested build configurations", JAX's change log; read in
// November 2026).
#include <string>
#include <string_view>

namespace mlenv {

/// Whether a release of `framework` (`pytorch`, `tensorflow`, `jax`) that the specifiers (PEP 440)
/// allow has builds for that major version; true for frameworks and versions that are not known.
bool has_builds_for_cuda(std::string_view framework, std::string_view specifiers,
                         std::string_view major);

/// The same of a Python (`3.11`), whose wheels it has on Linux.
bool has_builds_for_python(std::string_view framework, std::string_view specifiers,
                           std::string_view python);

/// The CUDA major version of the newest TensorFlow that the specifiers allow: `12`, `11`; empty:
/// of one before 2.4, whose CUDA no recipe can say.
std::string_view cuda_of_tensorflow(std::string_view specifiers);

}  // namespace mlenv
