#pragma once
// Folders and files of the host that a guest sees: bind mounts below the one folder that is shared.
#include <vector>

#include "runner/local/bundle.hpp"

namespace mlenv {

bool is_folder(const fs::path& path);

/// Outer ones first; of two at one target the later one.
std::vector<Mount> in_order(const std::vector<Mount>& all);

/// At `place`, which is made. What is mounted below a source comes along. Throws `bad-mount`.
void bind_share(const Mount& mount, const fs::path& place);

}  // namespace mlenv
