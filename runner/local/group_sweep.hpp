#pragma once
// Control groups that nobody came to remove: whoever would have was killed together with the run,
// as by a power cut of a node that this machine plays, or by the end of a container around mlenv.
#include <chrono>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// Long enough for any run that has made a group to go into it.
inline constexpr std::chrono::minutes kUnusedGroup{5};

/// Removes groups of runs (`mlenv-…`) in these folders in which no process is, and that were made
/// longer ago than `age`. Never throws: what cannot be removed stays.
void sweep_groups(const std::vector<fs::path>& folders, std::chrono::seconds age) noexcept;

/// The same beside the groups that this process would make now; only root makes any.
void sweep_own_groups() noexcept;

}  // namespace mlenv
