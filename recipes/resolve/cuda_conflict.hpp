#pragma once
// Why a recipe's `cuda` cannot be had, told by what can be had instead.
#include <functional>
#include <optional>
#include <variant>

#include "recipes/resolve/conflict.hpp"
#include "recipes/resolve/wheels.hpp"

namespace mlenv {

using WheelAnswer = std::variant<WheelResolution, Conflict>;

/// nullopt: `answer` stands. Else `cuda` is what stands in the way (or was not met: old builds
/// bring CUDA without naming it, others bring none); `find` is asked for the same recipe with other
/// values of `cuda`, so that the facts and the hint are true.
std::optional<Conflict> cuda_conflict(const WheelRequest& request, const WheelAnswer& answer,
                                      const std::function<WheelAnswer(const WheelRequest&)>& find);

}  // namespace mlenv
