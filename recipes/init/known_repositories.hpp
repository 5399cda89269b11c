#pragma once
// Packages of Python that no index has under their name, or has a stranger's of: their makers say
// to install them from their repositories.
#include <string>
#include <string_view>

namespace mlenv {

/// `git+https://…` of `pytorch3d`, detectron2 and their kin; empty for all others.
std::string repository_of_package(std::string_view name);

/// Why it is told: of the name, and its address.
inline constexpr std::string_view kOfRepository =
    "Python's index does not have it, or has another by that name: `mlenv add '{} @ {}'` builds it "
    "from its makers' repository";

}  // namespace mlenv
