#pragma once
// Wheels for a lock, through `uv`: index settings and logins are uv's alone.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/http.hpp"
#include "base/progress.hpp"
#include "recipes/lock.hpp"
#include "recipes/resolve/conflict.hpp"
#include "recipes/resolve/source_release.hpp"

namespace mlenv {

/// The uv program: on PATH when it is new enough, else installed once into `cache` from the
/// machine's own Python index (`pip download`, pinned by hash), else throws `no-uv` with what to
/// do.
fs::path provide_uv(const fs::path& cache, Progress& progress);

struct WheelRequest {
  std::string python;  ///< full version, `3.11.2`: markers may ask for it
  std::string glibc;   ///< `2.36`: the newest manylinux tag that the base can load
  std::string architecture = "amd64";
  const Recipe* recipe = nullptr;    ///< framework, cuda, packages, sources
  const Lock* previous = nullptr;    ///< its versions are kept where they still fit; may be null
  std::vector<std::string> moved{};  ///< packages whose version in `previous` is not kept
  /// The CUDA release whose compiler and headers come along; empty: none. With it, the versions of
  /// `kept`, found without it, go before those of `previous`.
  std::string compiler{};
  std::vector<LockedWheel> kept{};
  /// Constraints of mlenv's own (`numpy<2`), beside the recipe's (package_limits.hpp).
  std::vector<std::string> limits{};
  /// Builds what has no wheel; null: that is a Conflict. `image`: what the image will have, where
  /// the build wants to know it.
  std::function<std::variant<BuiltRelease, Conflict>(const SourceRelease&,
                                                     const std::vector<LockedWheel>& image)>
      build = nullptr;
  /// Wheels of what the recipe names by its address; may be null where it names nothing so.
  const std::vector<BuiltRelease>* direct = nullptr;
};

/// Extras by the normalised name of the package that they are asked of.
using AskedExtras = std::map<std::string, std::set<std::string>>;

struct WheelResolution {
  std::vector<LockedWheel> wheels;          ///< sorted
  std::map<std::string, std::string> urls;  ///< hex digest → URL, for the download that follows
  std::optional<LockedCuda> cuda;
  std::vector<LockedSource> sources;      ///< of wheels that were built; sorted
  std::vector<LockedWheel> build_wheels;  ///< sorted by file
  /// Filled in where one of `direct` has an extra that nothing was known to ask for, and that names
  /// a package by its address.
  AskedExtras extras{};
  /// Under `cuda: cpu`: packages of NVIDIA's that came along, and who asks for them.
  std::map<std::string, std::set<std::string>> unwanted{};
  std::vector<std::string> yanked{};  ///< a sentence for each release that was yanked
  std::vector<std::string> limits{};  ///< constraints of mlenv's own that were held to
  /// A sentence for each of those, and for each that could not be held to.
  std::vector<std::string> limit_notes{};
};

/// Of its `unwanted`, a sentence: who brings them, and the ways out.
std::string unwanted_note(const WheelResolution& resolution);

/// Wheels only: a package that has none for this platform is a Conflict that says so; an older
/// release is never taken in silence because a newer one lacks a wheel (wheels.cpp tells how). Runs
/// no code of any package. Sizes that the index does not tell are asked of it by HEAD.
std::variant<WheelResolution, Conflict> resolve_wheels(const WheelRequest& request,
                                                       const fs::path& uv, Http& http,
                                                       const fs::path& cache, Progress& progress);

/// Where locked wheels lie, by their digest in hex; wheels that are gone are in neither.
struct WheelPlaces {
  std::map<std::string, std::string> urls;
  std::map<std::string, Digest> others;  ///< an index has a file of that name, of this digest
};

/// Places of exactly these locked wheels on this machine's indexes, asked of uv (by name, version
/// and file name; digest checked).
WheelPlaces locate_wheels(const std::vector<LockedWheel>& wheels, const WheelRequest& request,
                          const fs::path& uv, const fs::path& cache, Progress& progress);

/// Where the source of a release lies, asked of uv; nullopt when it has none.
std::optional<SourceRelease> locate_source(const std::string& name, const std::string& version,
                                           const WheelRequest& request, const fs::path& uv,
                                           const fs::path& cache);

/// All that the recipe asks of uv: requirements in the order of `framework`, `packages` and the
/// files in `requirements`, then what the framework leaves to others to name; constraints that
/// `cuda` stands for (docs/recipe.md, "cuda") and those of files.
struct FrameworkRequirements {
  std::vector<std::string> requirements;
  std::vector<std::string> constraints;
};
FrameworkRequirements framework_requirements(const Recipe& recipe);
/// Whether its framework is a TensorFlow that names no package of CUDA (compat/old_tensorflow.hpp).
bool asks_old_tensorflow(const Recipe& recipe);

}  // namespace mlenv
