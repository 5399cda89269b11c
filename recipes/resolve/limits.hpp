#pragma once
// Packages that do not work together though their wheels allow it (compat/package_limits.hpp): a
// version that fits is taken where the recipe leaves that open.
#include <string>
#include <vector>

#include "recipes/compat/package_limits.hpp"
#include "recipes/resolve/alternatives.hpp"

namespace mlenv {

/// Two of the wheels that do not work together.
struct LimitFault {
  const PackageLimit* limit = nullptr;
  std::string package;  ///< `torch 2.0.1`
  std::string other;    ///< the version that stands against it: `2.4.6`

  /// `torch 2.0.1 is built for NumPy 1, and does not work with numpy 2.4.6`
  std::string str() const;
};
std::vector<LimitFault> limit_faults(const std::vector<LockedWheel>& wheels);

/// The answer with its faults mended, as far as `find` has an answer with such a constraint more.
/// What the recipe, or another package, asks for so that none has, stays, with a note.
WheelAnswer within_limits(const WheelRequest& request, WheelAnswer answer, const FindWheels& find);

}  // namespace mlenv
