#pragma once
// Running uv: where it runs, which interpreter it is told of, and what its failures mean.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "recipes/resolve/conflict.hpp"
#include "recipes/resolve/pylock.hpp"
#include "recipes/resolve/wheels.hpp"

namespace mlenv {

inline constexpr std::string_view kUvPinned = "0.13.8";  ///< the release that `provide_uv` installs
inline constexpr std::string_view kUvOldest = "0.8.24";  ///< the oldest that it takes from PATH

/// A program that answers uv's questions about an interpreter as the image's would, and never runs
/// anything: uv resolves for the image without Python on this machine, and every attempt to run a
/// package's build fails before it starts. Made once in the cache; returns its path.
fs::path described_interpreter(const fs::path& cache, std::string_view python,
                               std::string_view glibc, std::string_view architecture);

/// One such, to try a uv with; its folder's name changes with what such programs answer.
fs::path sample_interpreter(const fs::path& cache);

/// Whether this uv understands `described_interpreter`.
bool uv_understands(const fs::path& uv, const fs::path& cache);

/// `own` (`NAME=value`) less the variables that would steer uv away from what is asked, and with
/// this machine's certificate authorities in place of uv's list, unless it names others for uv.
std::vector<std::string> uv_environment(const std::vector<std::string>& own);
/// Of this process.
std::vector<std::string> uv_environment();

struct UvQuestion {
  std::vector<std::string> requirements;
  std::vector<std::string> constraints;
  std::vector<LockedWheel> preferences;  ///< versions to keep where they fit
  std::vector<std::string> only_wheels;  ///< packages whose source releases are out of the question
  std::set<std::string> from_source{};   ///< packages whose wheels are out of the question
  std::vector<std::string> overrides{};  ///< in place of whatever is asked of their packages
  std::string prerelease{};              ///< uv's word; empty: its usual
  bool no_sources = false;               ///< none may come from source
  bool no_dependencies = false;
  std::vector<ReleaseMetadata> known;  ///< releases that uv need not build to know them
};

/// uv came upon a package that it could only know by building it.
struct NeedsBuild {
  std::string name;
  std::string version;
};

using UvAnswer = std::variant<std::vector<PylockPackage>, Conflict, NeedsBuild>;

/// Asks `uv pip compile`. Throws `network`, `uv-failed`, `timeout`.
UvAnswer ask_uv(const UvQuestion& question, const WheelRequest& request, const fs::path& uv,
                const fs::path& cache);

/// The extras that are asked of each package in the answer to the question. Throws as `ask_uv`,
/// also where that is no list of packages.
AskedExtras ask_extras(const UvQuestion& question, const WheelRequest& request, const fs::path& uv,
                       const fs::path& cache);

/// Which packages of the answer ask for each; nothing where uv does not tell.
using PackageAskers = std::map<std::string, std::set<std::string>>;
PackageAskers ask_askers(const UvQuestion& question, const WheelRequest& request,
                         const fs::path& uv, const fs::path& cache);

/// Puts what uv warns of into the packages of its answer: releases that were yanked, and why.
void mark_yanked(std::string_view said, std::vector<PylockPackage>& packages);
/// What uv said, without lines that say nothing of a failure.
std::string without_uv_warnings(std::string_view said);

/// What uv said when it failed; `own_indexes`: the recipe names the indexes. Throws as `ask_uv`.
std::variant<Conflict, NeedsBuild> explain_uv_failure(std::string_view said,
                                                      bool own_indexes = false);

}  // namespace mlenv
