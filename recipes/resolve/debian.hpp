#pragma once
// Debian packages for a lock: the machine's apt sources, verified indexes, libsolv steered to apt's
// choices.
#include <optional>
#include <set>
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
  /// Keyring, or a folder of keyrings; empty: the distribution's archive keyring of this machine.
  fs::path signed_by;
  std::string key;  ///< ASCII-armoured keys used instead of `signed_by`; empty: none
  std::vector<std::string> architectures;  ///< empty: every one
  std::string origin;  ///< what the Release must state, else the source is passed over; empty: any
  bool check_valid_until = true;
  bool optional = false;  ///< its suite's name is our guess: passed over where there is none such
  friend bool operator==(const DebianSource&, const DebianSource&) = default;
};

/// Value of the environment variable `MLENV_DEBIAN_SOURCES`; empty when it is not set.
fs::path debian_sources_setting();

/// Sources for a base: the recipe's own, where they hold the base's suite. Else `sources_file` (in
/// either apt format; absent throws), else the machine's apt configuration (`root`/etc/apt:
/// sources.list and sources.list.d, one-line and deb822), its suites renamed when the machine runs
/// another release of the same distribution (`root`/etc/os-release), and on top of them the
/// recipe's. Of file and machine only the distribution's own archives (SUITE, -updates, -security)
/// are taken, and, next to SUITE, such others as `system: [NAME/SUITE-backports]` names. Throws
/// `no-sources` with what to write.
std::vector<DebianSource> debian_sources(const Recipe& recipe, const fs::path& root = "/",
                                         const fs::path& sources_file = debian_sources_setting());

/// What a base that is an image brings along of apt's configuration.
struct BaseSources {
  /// Each entry that can be used, whatever its origin, and the recipe's own on top. Empty where
  /// the recipe's sources or `sources_file` come first.
  std::vector<DebianSource> sources;
  bool hold_suite = false;  ///< the distribution's archive of the base's suite is among them
};
/// `settings` holds the base's /etc/apt, its keyrings and its os-release, as below `/`;
/// `recipe.distribution` and `suite` are the base's. An entry that names no keyring is signed by
/// one that the base's apt trusts; where the base has none, by the archive's keys of this machine.
BaseSources base_sources(const Recipe& recipe, const fs::path& settings,
                         const fs::path& sources_file = debian_sources_setting());

struct DebianRequest {
  std::string distribution = "debian";
  std::string suite;
  std::string architecture = "amd64";
  /// On top of the Essential set, Priority: required and apt: `name`, `name=version`, `name/suite`,
  /// each with `:ARCHITECTURE` after the name where wanted (only the request's own).
  std::vector<Placed> packages;
  fs::path recipe;     ///< for messages; may be empty
  std::string source;  ///< the recipe's text, for carets; may be empty
  /// What was taken from the same sources before; where they are behind it now, `index-older`.
  std::vector<LockedDeb> before;
  bool same_as_before = false;  ///< … for these very `packages`
  /// Stanzas of what is installed already (`BaseSystem::installed`): then the answer is what is
  /// added or replaced, as `apt-get install` would. A package that is there stays as it is unless
  /// it is named or a dependency forces another version, and is never removed. nullopt: nothing is
  /// there, and the Essential set, Priority: required and apt are taken too.
  std::optional<std::string> installed{};
  std::set<std::string> held{};  ///< of those, names that stay at their version
};

struct DebianResolution {
  std::vector<LockedDeb> debs;  ///< sorted
};

/// Fetches and verifies InRelease (signature by librnp against `signed_by`; Date and Valid-Until
/// where the release says so) and Packages indexes into `cache` (reused when the Release did not
/// change; offline when it cannot be reached and `cache` has them: a progress note says so), then
/// solves. The answer depends on request and indexes alone. Safe with many processes on one cache.
/// Throws `bad-signature`, `no-keyring`, `release-invalid`, `release-mismatch`, `index-expired`,
/// `index-invalid`, `index-mismatch`, `index-older`, `no-sources`, `http-status`, `network`. Other
/// answers than a resolution (no such package, nothing fits together) are a Conflict.
std::variant<DebianResolution, Conflict> resolve_debian(const DebianRequest& request,
                                                        const std::vector<DebianSource>& sources,
                                                        Http& http, const fs::path& cache,
                                                        Progress& progress);

/// Where a locked package may be fetched, likeliest first: each source's archive root joined with
/// its pool path. Sources that `resolve_debian` passes over for their origin are among them.
std::vector<std::string> deb_urls(const LockedDeb& deb, const std::vector<DebianSource>& sources);

}  // namespace mlenv
