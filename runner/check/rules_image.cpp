// What is odd about the image alone.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "runner/check/driver_standing.hpp"
#include "runner/check/rules.hpp"

namespace mlenv {
namespace {

/// What is worth a word.
constexpr std::uint64_t kMuch = 10'000'000;

}  // namespace

void two_cuda_runtimes(Case& here) {
  const auto& runtimes = here.image().cuda_runtimes;
  if (!runtimes) return;
  std::map<std::string, std::string> paths;  // by release, the first of each
  for (const FoundLibrary& one : *runtimes) {
    // A copy within another library is that library's own affair.
    const bool is_file = one.path.empty() || one.path.find("libcudart") != std::string::npos;
    if (is_file && !one.version.empty()) paths.emplace(version_prefix(one.version, 2), one.path);
  }
  if (paths.size() < 2) return;
  std::vector<std::string> found;
  for (const auto& [release, path] : paths) {
    found.push_back(path.empty() ? release : fmt::format("{} in `{}`", release, path));
  }
  here.find("two-cuda-runtimes",
            {"one release of the CUDA runtime", join(found, ", "), runtimes.source,
             "take a base without CUDA (`base: debian:bookworm`): the wheels bring theirs along; "
             "which of two is loaded "
             "depends on LD_LIBRARY_PATH and on what is imported first"});
}

void wasted_bytes(Case& here) {
  const auto& waste = here.image().waste;
  if (!waste) return;
  std::uint64_t bytes = 0;
  std::vector<std::string> kinds;
  for (const Waste& one : *waste) {
    bytes += one.bytes;
    kinds.push_back(fmt::format("{} {}", one.kind, size_text(one.bytes)));
  }
  if (bytes < kMuch) return;
  here.find("wasted-bytes",
            {"only what containers use",
             fmt::format("{} ({})", size_text(bytes), join(kinds, ", ")), waste.source,
             "delete files in the step that makes them, and keep caches out of it (`pip install "
             "--no-cache-dir`, `rm -rf /var/lib/apt/lists/*`)"});
}

}  // namespace mlenv
