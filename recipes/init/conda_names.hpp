#pragma once
// What a package of conda's is called elsewhere. conda has libraries and programs among its
// packages; one of these is never asked of PyPI by its name, where a stranger's project may be
// called so.
#include <string>
#include <string_view>

namespace mlenv {

enum class CondaKind {
  python,    ///< a Python package
  system,    ///< what Debian has for programs
  library,   ///< no Python package: a library, a program, a package that only names others
  needless,  ///< what mlenv or Python itself does: `pip`, `dataclasses`, `conda`
  windows,   ///< of Windows alone
  r,         ///< R, and its packages
  unknown    ///< the table does not have it
};

struct CondaName {
  CondaKind kind = CondaKind::unknown;
  std::string name{};  ///< of `python`: on PyPI, with extras; of `system`: names, blanks between
  /// Of `system`: a library that other packages of conda's bring along. Where a file lists all that
  /// is installed, it is no wish of anybody's.
  bool brought_along = false;
};

/// By the table in conda_names.txt, which is made from public ones, and by what is known here.
CondaName conda_name(std::string_view name);

}  // namespace mlenv
