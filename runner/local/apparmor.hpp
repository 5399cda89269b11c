#pragma once
// The AppArmor profile of containers (packaging/apparmor/mlenv-container).
#include <string>

#include "base/files.hpp"

namespace mlenv {

inline constexpr std::string_view kContainerProfile = "mlenv-container";

/// `kContainerProfile` where AppArmor is on and root has loaded it; else empty, and containers have
/// whatever profile the caller has. `root`: of this machine.
std::string loaded_container_profile(const fs::path& root = "/");

}  // namespace mlenv
