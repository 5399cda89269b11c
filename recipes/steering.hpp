#pragma once
// What a recipe says of how its packages are chosen and built, in uv's and pip's own words: its
// keys (docs/recipe.md, "Choosing and building"), `[tool.uv]` of its pyproject.toml, and options of
// its requirements.txt. All of it is in the lock's request.
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// Where packages of these names are looked for, and nowhere else.
struct PackageIndex {
  /// Of an index, or of a page or folder of files; a folder on this machine may be a path from the
  /// recipe's folder. In a lock: 64 hex digits.
  std::string url;
  bool is_page = false;            ///< such a page or folder (`find-links`)
  std::set<std::string> packages;  ///< normalised names
  friend bool operator==(const PackageIndex&, const PackageIndex&) = default;
};

/// What uv is told of a release so that it need not build it, or to mend what it says of itself
/// (`dependency-metadata`).
struct StatedMetadata {
  std::string name;     ///< normalised
  std::string version;  ///< empty: of every version
  std::vector<std::string> requires_dist;
  std::string requires_python;
  std::vector<std::string> extras;
  friend bool operator==(const StatedMetadata&, const StatedMetadata&) = default;
};

/// How wheels are made of sources.
struct BuildSteering {
  /// `all`: of every package's build; the rest by normalised name of the package that is built.
  template <class Value>
  struct ByPackage {
    Value all{};
    std::map<std::string, Value> by_name{};
    bool empty() const { return all.empty() && by_name.empty(); }
    friend bool operator==(const ByPackage&, const ByPackage&) = default;
  };

  std::vector<std::string> constraints;  ///< PEP 508, of build requirements; sorted, unique
  /// What builds need and do not declare, PEP 508: `numpy`. Those that the image has, too, are
  /// taken in the image's version (uv's `match-runtime`).
  std::map<std::string, std::vector<std::string>> requirements;
  ByPackage<std::map<std::string, std::string>> env;  ///< one name's go before `all`
  /// For the build's backend (PEP 517); several values of one key in order.
  ByPackage<std::map<std::string, std::vector<std::string>>> config_settings;
  bool network = false;  ///< whether builds have the host's network

  bool empty() const { return *this == BuildSteering{}; }
  friend bool operator==(const BuildSteering&, const BuildSteering&) = default;
};

struct Steering {
  std::vector<std::string> overrides;  ///< PEP 508 in place of what anybody asks; sorted, unique
  std::set<std::string> exclude;       ///< normalised names that are never installed
  /// Normalised names, or `:all:`.
  std::set<std::string> no_binary;      ///< built from source though there are wheels
  std::set<std::string> only_binary;    ///< never built from source
  std::set<std::string> prefer_binary;  ///< an older wheel goes before a newer source
  std::string prerelease;  ///< uv's `allow`, `disallow`, `if-necessary`, …; empty: uv's usual
  /// `2021-03-01` or `2021-03-01T12:00:00Z`: what was uploaded later is not there; empty: all is.
  std::string exclude_newer;
  std::vector<PackageIndex> indexes;     ///< sorted by URL
  std::vector<StatedMetadata> metadata;  ///< sorted by name and version
  BuildSteering build;

  bool empty() const { return *this == Steering{}; }
  friend bool operator==(const Steering&, const Steering&) = default;
};

inline constexpr std::string_view kAllPackages = ":all:";
/// What `prerelease` may be.
std::span<const std::string_view> prerelease_words();

/// Whether `exclude-newer` may be that: a day, or a moment in UTC.
bool is_upload_date(std::string_view text);

/// Whether such a list names the package, or all.
bool names_package(const std::set<std::string>& list, const std::string& name);
/// The package that a PEP 508 text is about, normalised; the text itself where it is none.
std::string package_of_requirement(const std::string& requirement);

/// Sorts and joins: lists of texts sorted and unique, `indexes` by URL, `metadata` by name.
void put_in_order(Steering& steering);
/// Adds what files say to what goes before them: what that says of a package stays.
void add_steering(Steering& first, const Steering& more);
/// As a lock keeps it: in place of each URL the digest of it, since a lock holds no host.
Steering locked_steering(Steering steering);

}  // namespace mlenv
