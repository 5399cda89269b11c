#pragma once
// Which GPUs a wheel's libraries hold code for, read off their fat binaries.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/progress.hpp"
#include "images/inspect/device_code.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// Of all libraries (`*.so*`) of a wheel; empty for a wheel without device code. Sorted. Throws as
/// `read_zip_directory` and inflating do.
std::vector<DeviceCode> device_code_in(const fs::path& wheel);

/// Where a wheel's bytes are; nullopt: not at hand.
using WheelPath = std::function<std::optional<fs::path>(const LockedWheel&)>;

/// A line for each wheel at hand that has device code, but none for some of the lock's `gpus` (code
/// that must be compiled from PTX counts). NVIDIA's own libraries are not looked at: they leave out
/// what a GPU has no use for, and their CUDA release decides. What was read is remembered in
/// `cache`.
std::vector<std::string> missing_device_code(const Lock& lock, const WheelPath& path_of,
                                             const fs::path& cache, Progress& progress);

}  // namespace mlenv
