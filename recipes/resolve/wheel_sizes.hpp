#pragma once
// Sizes of wheels whose index does not tell them.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/http.hpp"
#include "base/progress.hpp"
#include "recipes/resolve/wheels.hpp"

namespace mlenv {

struct SizeQuestion {
  std::string url;
  std::string file;
  std::uint64_t size_bytes = 0;  ///< the answer
};

/// Asks by HEAD, several at a time; where a server will not tell, by a GET of one byte. Throws
/// `network`, `http-status`, `no-size`.
void ask_sizes(std::vector<SizeQuestion>& questions, Http& http, Progress& progress);

/// Fills in sizes that the index did not tell: from the old lock (may be null), the cache's memory,
/// else as `ask_sizes` does.
void fill_sizes(WheelResolution& resolution, const Lock* previous, const fs::path& cache,
                Http& http, Progress& progress);

}  // namespace mlenv
