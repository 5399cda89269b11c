#pragma once
// What a recipe's `driver`, `gpus` and `libraries` ask of the wheels that were found for it.
#include <optional>
#include <string>
#include <vector>

#include "recipes/compat/architecture.hpp"
#include "recipes/resolve/alternatives.hpp"
#include "recipes/resolve/uv.hpp"

namespace mlenv {

/// nullopt: `answer` stands. Else what is not met, and the nearest choice that meets all of it:
/// other values of `cuda`, from the newest release down, are tried with `find` until one does.
std::optional<Conflict> demand_conflict(const WheelRequest& request, const WheelAnswer& answer,
                                        const FindWheels& find);

/// With `libraries: {nvcc: true}`: the same wheels and the compiler of their CUDA release, where
/// its packages hold one.
WheelAnswer with_compiler(const WheelRequest& request, WheelAnswer answer, const FindWheels& find);
/// The CUDA release of wheels whose compiler packages hold; empty: there is none.
std::string compiler_release(const std::vector<LockedWheel>& wheels);
std::vector<std::string> compiler_requirements(const std::string& release);
std::vector<std::string> compiler_constraints(const std::string& release);
/// The compiler and headers of a release, as `cuda-toolkit` groups them.
void add_compiler(UvQuestion& question, const std::string& release);

/// For recipes with demands: what the lock says of their CUDA wheels. GPUs that only PTX serves
/// raise the oldest driver to the release's own.
void describe_cuda(const Recipe& recipe, WheelResolution& resolution);

/// What the framework's wheels hold code for, as far as it is known before they are read: that
/// which all of them serve. nullopt when it is known of none.
std::optional<std::vector<DeviceCode>> stated_device_code(const std::vector<LockedWheel>& wheels,
                                                          const std::string& cuda);

}  // namespace mlenv
