#pragma once
// What a recipe names by its address, brought to this machine.
#include <functional>
#include <optional>

#include "builder/build_workshop.hpp"

namespace mlenv {

struct DirectSource {
  /// What a lock holds of it; without name, version and `built_with`.
  LockedSource locked;
  /// Lays it out in a folder, as often as it is asked. Of the same bytes each time, else it throws.
  std::function<void(const fs::path& folder)> lay;
  fs::path file;  ///< where it is a file
  fs::path tree;  ///< where it is none; nothing of it may be followed that is a link
};

/// `commit`: of a repository, what is built; empty: what its reference means now. `expected` is
/// known of it already. Throws as provide_git_tree does, a mistake at the recipe's place for a path
/// that is not there, `http-status` and its kin, `hash-mismatch` where the address promises other
/// bytes.
DirectSource bring_direct(const DirectRequirement& wanted, const std::string& commit,
                          const std::optional<Digest>& expected, const BuildPlace& place);

/// Tells the builds of a repository that take their version from git's tags what those are, in the
/// way that tools have for sources without `.git` (setuptools-scm, "Git archives"): `describe`, or
/// with null what the repository says now. Others are left as they are.
void tell_git_version(DirectSource& source, const std::string* describe, const BuildPlace& place);

}  // namespace mlenv
