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
  std::string name() const;   ///< `torch`
  std::string newer() const;  ///< the bound that brings the package behind the limit: `torch>=2.3`
  std::string older() const;  ///< before it: `ipython<8.23`; empty: it holds from the first on
};
std::vector<LimitFault> limit_faults(const std::vector<LockedWheel>& wheels);

/// The answer with its faults mended, as far as `find` has an answer with such a constraint more.
/// Where the other package has to stay, the ones that do not work with it move. What the recipe, or
/// another package, asks for so that neither can, stays, with a note.
WheelAnswer within_limits(const WheelRequest& request, WheelAnswer answer, const FindWheels& find);

}  // namespace mlenv
