#pragma once
// Which GPU architectures builds of frameworks hold machine code for, and which of them hold CUDA
// itself, before they are downloaded.
// The rows are recipes/compat/cuda.toml's. Every one was read off wheels (CPython 3.11 or
// the newest that they are for, linux x86_64): what `torch.cuda.get_arch_list()` would answer, a
// text in libtorch_python.so, which would name PTX too. The row of 2.15 was also held against every
// fat binary of its libtorch_cuda.so, by cuobjdump. What a wheel says of itself wins: the build
// reads it (device_code.hpp).
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/compat/architecture.hpp"

namespace mlenv {

/// nullopt: no wheel of this release was read. `cuda` is the release that its wheels carry, which
/// tells one build of a version from another where there are several.
std::optional<std::vector<DeviceCode>> known_device_code(std::string_view package,
                                                         std::string_view version,
                                                         std::string_view cuda);

/// The CUDA release whose libraries a wheel holds itself, so that it names no package of them: told
/// by the local version (`1.12.1+cu113`) or the table. Empty: none, or not known.
std::string cuda_inside(std::string_view package, std::string_view version, std::string_view file);

}  // namespace mlenv
