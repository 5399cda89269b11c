#pragma once
// Release files (Debian wiki, DebianRepository/Format): what an archive's suite consists of.
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"

namespace mlenv {

struct ReleaseFile {
  std::uint64_t size_bytes = 0;
  Digest digest;
  friend bool operator==(const ReleaseFile&, const ReleaseFile&) = default;
};

struct Release {
  std::string origin;
  std::string label;
  std::string suite;     ///< `oldstable-security`
  std::string codename;  ///< `bookworm-security`
  std::time_t date = 0;
  std::optional<std::time_t> valid_until;
  bool by_hash = false;
  bool not_automatic = false;       ///< NotAutomatic: nothing comes from here unless asked for
  bool automatic_upgrades = false;  ///< ButAutomaticUpgrades: … but for what came from here before
  bool separate_all = false;        ///< packages of Architecture: all have an index of their own
  std::vector<std::string> architectures;
  std::vector<std::string> components;                    ///< `updates/main` as `main`
  std::map<std::string, ReleaseFile, std::less<>> files;  ///< by path below dists/SUITE

  /// apt_preferences(5), "Apt's Default Priority Assignments", for what is not installed: 500, of
  /// NotAutomatic releases 100 with ButAutomaticUpgrades and 1 without.
  int priority() const {
    if (!not_automatic) return kUsualPriority;
    return automatic_upgrades ? 100 : 1;
  }
  static constexpr int kUsualPriority = 500;

  /// The Packages index of a component in the compression we like best: .xz, .gz, none. nullptr
  /// when the release has no such component or architecture.
  const std::pair<const std::string, ReleaseFile>* packages(std::string_view component,
                                                            std::string_view architecture) const;
};

/// `text` has been verified (release_signature.hpp). Throws `release-invalid` naming `what`: no or
/// malformed Date, no SHA256 section.
Release parse_release(std::string_view text, std::string_view what);

/// Throws `release-mismatch` when the file is for another suite than `suite` (its Suite and
/// Codename are looked at), and `index-expired` when `now` is past Valid-Until or a day or more
/// before Date.
struct ReleaseChecks {
  std::string suite;
  std::time_t now = 0;
  bool valid_until = true;
};
void check_release(const Release& release, const ReleaseChecks& checks, std::string_view what);

/// `Sat, 11 Jul 2026 10:16:37 UTC` (RFC 2822 with a zone name or offset of zero); nullopt
/// otherwise.
std::optional<std::time_t> parse_release_date(std::string_view text);
/// `2026-07-11 10:16 UTC`
std::string render_time(std::time_t time);

}  // namespace mlenv
