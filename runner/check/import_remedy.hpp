#pragma once
// What makes an import succeed that failed: the Debian package of a library, or the Python package
// of a module. Names are those of Debian 12 and of the Python index in November 2026.
#include <string>
#include <string_view>
#include <vector>

#include "images/inspect/image_facts.hpp"

namespace mlenv {

/// As Debian names packages of libraries (policy, 8.1): `libgl1` of `libGL.so.1`, `libfoo-2-3` of
/// `libfoo-2.so.3`; those that are called otherwise, as far as they are known.
std::string debian_package_of(std::string_view soname);

struct ImportRemedy {
  std::string system;  ///< a Debian package; or
  std::string python;  ///< a Python package that is known to have the module, never guessed; or
  /// the bound of a release that went too far: `numpy<2`. All empty: nothing is known.
  std::string constraint{};
};
ImportRemedy remedy_of(const FailedImport& failed);

/// The lines of a recipe that mend them: `system: [libgomp1]` and `packages: ["pyyaml"]`, each in
/// backticks; empty: nothing is known.
std::vector<std::string> recipe_lines(const std::vector<FailedImport>& failed);

}  // namespace mlenv
