#pragma once
#include "base/files.hpp"

namespace mlenv {

/// Copies what is in the folder `from` onto the folder `to`: files and links take the place of what
/// has their name there, links as they are. Two layers may hold the same link, which fs::copy does
/// not write over.
void lay_over(const fs::path& from, const fs::path& to);

}  // namespace mlenv
