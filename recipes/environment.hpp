#pragma once
// What is installed in an environment, as far as it is known: all of it from a lock, names and
// versions from the files of any image.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/value_change.hpp"
#include "images/image_files.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

struct ListedPackage {
  std::string name;
  std::string version;
  std::string architecture;  ///< of Debian packages alone
  std::optional<std::uint64_t> size_bytes;
  std::optional<Digest> digest;
  std::string file;        ///< file name of a wheel, path of a Debian package; empty: not known
  bool requested = false;  ///< as in LockedWheel
  friend bool operator==(const ListedPackage&, const ListedPackage&) = default;
};

struct Environment {
  std::string platform;               ///< `linux/amd64`
  std::vector<ListedPackage> debs;    ///< sorted by name, architecture, version
  std::vector<ListedPackage> wheels;  ///< sorted by name, version
};

Environment environment_of(const Lock& lock);

/// What `environment_in` reads of the file at this path of an image (relative): dpkg's status (also
/// in parts, below status.d), and of METADATA of installed Python packages the name. Those that
/// Debian packages bring along, in dist-packages, are left to dpkg's status.
Want tells_of_packages(std::string_view path);
/// From the contents of those files by path. Packages that dpkg has only configuration left of do
/// not count.
Environment environment_in(const std::map<std::string, std::string>& files, std::string platform);

/// `3.11.2`, from the package that holds the interpreter; empty when there is none.
std::string python_in(const Environment& environment);

struct PackageChange {
  enum class What {
    added,
    removed,
    upgraded,
    downgraded,
    other_bytes,  ///< of one version
    other_record  ///< of one version and the same bytes: file name, path, whether it was asked for
  };
  What what = What::added;
  std::optional<ListedPackage> from;  ///< nullopt when added
  std::optional<ListedPackage> to;    ///< nullopt when removed
  const ListedPackage& either() const { return to ? *to : *from; }
  friend bool operator==(const PackageChange&, const PackageChange&) = default;
};
/// `upgraded`
std::string_view name_of(PackageChange::What what);

struct EnvironmentDiff {
  ValueChanges values;
  std::vector<PackageChange> debs;    ///< by name
  std::vector<PackageChange> wheels;  ///< by name
  bool empty() const { return values.empty() && debs.empty() && wheels.empty(); }
};

/// Python, CUDA and its oldest driver (as the packages tell them), and the packages. Versions are
/// ordered as Debian and PEP 440 do it. What is known of one side only is no difference.
EnvironmentDiff diff_environments(const Environment& from, const Environment& to);
/// All that two locks say.
EnvironmentDiff diff_locks(const Lock& from, const Lock& to);

/// What somebody who has all of `from` must download to have `to`: packages whose bytes are not
/// among its own.
struct Fetch {
  std::size_t packages = 0;
  std::uint64_t bytes = 0;
};
Fetch fetch_between(const Lock& from, const Lock& to);

}  // namespace mlenv
