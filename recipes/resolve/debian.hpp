#pragma once
// Debian packages for a lock: the machine's apt sources, verified indexes, libsolv steered to apt's
// choices.
#include <string>
#include <variant>
#include <vector>

#include "base/http.hpp"
#include "base/progress.hpp"
#include "recipes/lock.hpp"
#include "recipes/resolve/conflict.hpp"

namespace mlenv {

/// One suite of one archive (sources.list(5)).
struct DebianSource {
  std::vector<std::string> uris;  ///< alternatives are not mirrors of one another: all are read
  std::string suite;              ///< `bookworm`, `bookworm-security`
  std::vector<std::string> components;
  fs::path signed_by;  ///< keyring; empty: the distribution's archive keyring of this machine
};

/// Sources for a base: the recipe's own, else `MLENV_DEBIAN_SOURCES` (a file in either apt format),
/// else the machine's apt configuration (`root`/etc/apt: sources.list and sources.list.d, one-line
/// and deb822), its suites renamed when the machine runs another release of the same distribution.
/// Only the distribution's own archives (SUITE, -updates, -security) are taken. Throws `no-sources`
/// with what to write.
std::vector<DebianSource> debian_sources(const Recipe& recipe, const fs::path& root = "/");

struct DebianRequest {
  std::string suite;
  std::string architecture = "amd64";
  std::vector<Placed> packages;  ///< on top of the Essential set and Priority: required
};

struct DebianResolution {
  std::vector<LockedDeb> debs;  ///< sorted
};

/// Fetches and verifies InRelease (signature by librnp against `signed_by`; Date and Valid-Until
/// where the release says so) and Packages indexes into `cache` (reused when the Release did not
/// change; offline when it cannot be reached and `cache` has them: a progress note says so), then
/// solves. Throws `bad-signature`, `index-mismatch`, `network`.
std::variant<DebianResolution, Conflict> resolve_debian(const DebianRequest& request,
                                                        const std::vector<DebianSource>& sources,
                                                        Http& http, const fs::path& cache,
                                                        Progress& progress);

/// Where a locked package may be fetched: each source's archive root joined with its pool path.
std::vector<std::string> deb_urls(const LockedDeb& deb, const std::vector<DebianSource>& sources);

}  // namespace mlenv
