#pragma once
// Frameworks that make kernels while they run (XLA in TensorFlow and JAX): a GPU that their
// compiler does not know is of no use to them, whatever PTX their own libraries hold. Rows as
// public reports and changes have them, read in November 2026 (runtime_compilers.cpp names each).
#include <optional>
#include <string_view>

#include "images/inspect/device_code.hpp"

namespace mlenv {

struct CompilerGap {
  std::string_view first;   ///< the first release that knows the GPU; empty: none known is
  std::string_view source;  ///< who says so
};

/// Of a release as its makers build it; nullopt: it knows the GPU, or mlenv does not know. One that
/// was built with code for the GPU is not to be asked about.
std::optional<CompilerGap> compiler_gap(std::string_view framework, std::string_view version,
                                        const DeviceCode& gpu);

}  // namespace mlenv
