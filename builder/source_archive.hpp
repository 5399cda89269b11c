#pragma once
// A source release as it is published, unpacked to be built: `NAME-VERSION.tar.gz` (PEP 625), and
// what was usual before.
#include <string>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// Unpacks the archive's one folder into `folder`: files and folders only, modes 0644 and 0755,
/// nothing outside of it (source_layout.hpp). How it is packed is told by its content: old tools
/// did not mind its name. Throws `bad-source`, `too-large`, and as the readers of tar and zip do.
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
