#pragma once
// A base that is an image, as a Debian system: what dpkg's records say is installed, and where its
// apt would fetch more.
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/http.hpp"
#include "base/progress.hpp"
#include "base/scratch_folder.hpp"
#include "images/stacked_trees.hpp"
#include "recipes/resolve/conflict.hpp"
#include "recipes/resolve/debian.hpp"

namespace mlenv {

struct BaseSystem {
  std::string distribution;  ///< `debian`, `ubuntu`: os-release(5) ID
  std::string suite;         ///< its VERSION_CODENAME
  /// Stanzas of the packages that are installed for its own architecture or all, with the fields
  /// that resolving reads.
  std::string installed;
  std::set<std::string> held;  ///< names of those on hold
  /// Its apt's sources and keys, and its os-release, as they lie below `/`; links are followed.
  std::shared_ptr<const ScratchFolder> settings;
};

/// The sentence that says why not, where an image takes no Debian packages: no dpkg, or none that
/// is whole (distroless), a distribution without archives that we know, records that dpkg left in
/// the middle of something.
std::variant<BaseSystem, std::string> read_base_system(const StackedTrees& files,
                                                       const std::string& architecture);

/// `settings` of a BaseSystem alone.
std::shared_ptr<const ScratchFolder> base_settings(const StackedTrees& files);

/// The stanzas of a dpkg status file, as `BaseSystem::installed` and `held` have them; a sentence
/// where a package is neither installed nor gone.
struct InstalledPackages {
  std::string stanzas;
  std::set<std::string> held;
};
std::variant<InstalledPackages, std::string> installed_packages(std::string_view status,
                                                                const std::string& architecture);

struct BaseRequest {
  const Recipe& recipe;
  const BaseSystem& base;
  DebianRequest packages;  ///< which, and what was locked before; the rest is filled in
};
/// What the packages add to the base, or replace in it.
/// Sources are, in this order: the recipe's own where they hold the base's suite, those of
/// MLENV_DEBIAN_SOURCES, the base's own, and where it has none or they cannot be reached (a note
/// says so), this machine's for the same suite. The base's may be of any origin, each trusted by
/// the keys that it names or, where it names none, by those that the base's apt trusts. Throws as
/// resolve_debian and debian_sources do.
std::variant<DebianResolution, Conflict> resolve_on_base(const BaseRequest& wanted, Http& http,
                                                         const fs::path& cache, Progress& progress);

/// Where packages on top of such a base may be fetched (`deb_urls`): the same sources, all of them.
/// The base's files as they were locked say it; `distribution` and `suite` are the lock's.
std::vector<DebianSource> sources_on_base(const Recipe& recipe, const std::string& distribution,
                                          const std::string& suite, const fs::path& settings);

}  // namespace mlenv
