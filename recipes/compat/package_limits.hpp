#pragma once
// Versions of Python packages that do not work together though their wheels allow it: NumPy 2 with
// what was built for NumPy 1, protobuf 4 with old TensorFlow. The rows are
// recipes/compat/package_limits.toml's, each with its source.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

struct PackageLimit {
  std::vector<std::string> packages;  ///< normalised names
  std::string from;                   ///< the first release that it holds for; empty: all
  std::string before;                 ///< the first that it no longer holds for
  std::string other;                  ///< `numpy`; `python`
  std::string specifier;              ///< PEP 440: `<2`
  std::string why;                    ///< behind a name and a version: `is built for NumPy 1`
  std::string source;
  std::string read;  ///< date

  /// `numpy<2`
  std::string requirement() const { return other + specifier; }
  bool holds_for(std::string_view package, std::string_view version) const;
};

struct PackageLimits {
  std::string date;
  std::map<std::string, std::string> sources;
  std::vector<PackageLimit> limits;
};

/// Throws `bug`, with the place, for a table that is not whole.
PackageLimits parse_package_limits(std::string_view text, const fs::path& shown_path);

/// The text of package_limits.toml.
std::string_view package_limits_data();
const PackageLimits& package_limits();

/// Whether a release has wheels for a Python (`3.11`), as far as the table knows.
bool has_wheels_for_python(std::string_view package, std::string_view version,
                           std::string_view python);

}  // namespace mlenv
