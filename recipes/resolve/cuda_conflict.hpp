#pragma once
// Why a recipe's `cuda` cannot be had, told by what can be had instead.
#include <optional>

#include "recipes/resolve/alternatives.hpp"

namespace mlenv {

/// nullopt: `answer` stands. Else `cuda` is what stands in the way (or was not met: old builds
/// bring CUDA without naming it, others bring none); `find` is asked for the same recipe with other
/// values of `cuda`, so that the facts and the hint are true.
std::optional<Conflict> cuda_conflict(const WheelRequest& request, const WheelAnswer& answer,
                                      const FindWheels& find);

}  // namespace mlenv
