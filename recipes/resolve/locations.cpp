#include "recipes/resolve/locations.hpp"

#include <charconv>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/own_entries.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

fs::path location_path(const fs::path& cache, const Digest& digest) {
  return cache / "locations" / digest.hex();
}

}  // namespace

std::optional<Location> recall_location(const fs::path& cache, const Digest& digest) {
  const std::optional<std::string> text = read_file_if_exists(location_path(cache, digest));
  if (!text) return std::nullopt;
  const std::size_t end = text->find('\n');
  Location location{.url = text->substr(0, end), .size_bytes = 0};
  if (end == std::string::npos || location.url.find("://") == std::string::npos ||
      has_control(location.url)) {
    return std::nullopt;
  }
  const std::string_view rest = std::string_view(*text).substr(end + 1);
  std::from_chars(rest.data(), rest.data() + rest.size(), location.size_bytes);
  if (location.size_bytes == 0) return std::nullopt;
  return location;
}

void remember_location(const fs::path& cache, const Digest& digest, const Location& location) {
  try {
    make_own_folders(cache / "locations");
    // For the owner alone: an index may put a token into its URLs.
    AtomicFile file(location_path(cache, digest), 0600);
    file.write(as_bytes(fmt::format("{}\n{}\n", location.url, location.size_bytes)));
    file.commit(false);
  } catch (const Error& error) {
    log::debug("cannot remember a location: {}", error.what());
  }
}

}  // namespace mlenv
