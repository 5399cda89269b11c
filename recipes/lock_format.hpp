#pragma once
// What the readers and writers of lock and built files share; the formats are in docs/lock.md.
#include <string_view>

#include "base/digest.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

/// Checks `version` and reads `revision`; a newer revision makes `reader` tolerant. An empty file
/// is a mistake that says so. Throws `lock-newer` for a newer version.
int read_format(TomlReader& reader, const TomlValue& root, int version, int revision);

/// 64 hex digits.
Digest read_digest(const TomlReader& reader, const TomlValue& table, const std::string& key);

/// `linux/amd64`, `linux/arm64`
std::string read_platform(const TomlReader& reader, const TomlValue& root);

}  // namespace mlenv
