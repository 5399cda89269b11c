#pragma once
// The cache's memory of where wheels lie: `cache/locations/HEX` holds a URL and a size, a line
// each.
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {

struct Location {
  std::string url;
  std::uint64_t size_bytes = 0;
};

/// nullopt when nothing (or nothing readable) is remembered.
std::optional<Location> recall_location(const fs::path& cache, const Digest& digest);

/// Losing it costs a question to the index, so failures to write are not errors.
void remember_location(const fs::path& cache, const Digest& digest, const Location& location);

}  // namespace mlenv
