#pragma once
// A source release as it is published (PEP 517 sdist, `NAME-VERSION.tar.gz`), unpacked to be built.
#include <string>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// Unpacks the archive's one folder into `folder`: files and folders only, modes 0644 and 0755,
/// nothing outside of it. Throws `bad-source`.
void unpack_source(const fs::path& archive, const std::string& file, const fs::path& folder);

/// `[build-system]` of its pyproject.toml (PEP 518), or what pip takes where there is none.
struct BuildSystem {
  std::vector<std::string> requirements;
  std::string backend;  ///< `hatchling.build`, `setuptools.build_meta:__legacy__`
  std::vector<std::string> backend_path;
};
/// `folder` as `unpack_source` made it; `file` names the release in messages. Throws `bad-source`.
BuildSystem read_build_system(const fs::path& folder, const std::string& file);

}  // namespace mlenv
