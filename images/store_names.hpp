#pragma once
// The files under names/: a reference, percent-encoded, holding a manifest's digest and a newline.
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "images/reference.hpp"

namespace mlenv {

/// Throws `bad-reference` (usage) when no file can have such a long name.
std::string name_file(const Reference& reference);
/// nullopt when no reference has that file name.
std::optional<std::string> name_of_file(std::string_view file);
/// nullopt when it is absent or does not hold a digest.
std::optional<Digest> read_name(const fs::path& file);

}  // namespace mlenv
