#pragma once
// Digests in texts of any form.
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {

/// All that stand in a text, with `sha256:` before them or without: runs of exactly 64 lower-case
/// hex digits, in their order.
std::vector<Digest> digests_in(std::string_view text);
/// Those of a file, after what is there; of one that is absent none.
void add_digests_in_file(const fs::path& file, std::vector<Digest>& found);

}  // namespace mlenv
