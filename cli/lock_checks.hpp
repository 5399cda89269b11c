#pragma once
// What locking checks beyond resolving.
#include <optional>
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "recipes/lock_set.hpp"

namespace mlenv::cli {

/// Normalised names of the Python packages that `--upgrade` names. Throws `bad-package` for one
/// that no platform's lock (at `path`) holds, `no-lock` where there is none; both usage.
std::vector<std::string> moved_packages(const std::vector<std::string>& wanted,
                                        const std::optional<LockSet>& locks, const fs::path& path);

/// Reads those wheels of the lock that the store holds. Throws `no-gpu-code` (exit 3) when one of
/// them has device code and none for one of the recipe's `gpus`.
void require_device_code(Ui& ui, const Lock& lock);

}  // namespace mlenv::cli
