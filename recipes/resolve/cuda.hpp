#pragma once
// CUDA as Python packages carry it: which constraints a release stands for, and which release a set
// of wheels holds.
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "recipes/lock.hpp"
#include "recipes/resolve/conflict.hpp"

namespace mlenv {

/// Constraints that keep every CUDA runtime but `release` (`13.0`, or `12` for any of that major)
/// out of a resolution.
std::vector<std::string> cuda_constraints(std::string_view release);
/// Constraints that keep every CUDA runtime out.
std::vector<std::string> no_cuda_constraints();

/// The release that the wheels hold; nullopt when they hold none; a Conflict when they hold two
/// majors.
std::variant<std::optional<LockedCuda>, Conflict> locked_cuda(
    const std::vector<LockedWheel>& wheels);

}  // namespace mlenv
