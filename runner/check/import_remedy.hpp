#pragma once
// What makes an import succeed that failed: the Debian package of a library, or the Python package
// of a module. Names are those of Debian 12 and of the Python index in November 2026.
#include <string>
#include <string_view>

#include "images/inspect/image_facts.hpp"

namespace mlenv {

/// As Debian names packages of libraries (policy, 8.1): `libgl1` of `libGL.so.1`, `libfoo-2-3` of
/// `libfoo-2.so.3`; those that are called otherwise, as far as they are known.
std::string debian_package_of(std::string_view soname);

/// The Python package that brings a top-level module: `opencv-python-headless` of `cv2`; the
/// module's own name where nothing else is known.
std::string python_package_of(std::string_view module);

struct ImportRemedy {
  std::string system;  ///< a Debian package; or
  std::string python;  ///< a Python package; both empty: nothing is known
};
ImportRemedy remedy_of(const FailedImport& failed);

/// The line of a recipe: `add `system: [libgomp1]``; empty: nothing is known.
std::string recipe_line(const ImportRemedy& remedy);

}  // namespace mlenv
