#pragma once
#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {

/// Of what a file holds. Throws as open_file and reading do.
Digest digest_of_file(const fs::path& path);
/// From where it is read next.
Digest digest_of_file(const Fd& file);

}  // namespace mlenv
