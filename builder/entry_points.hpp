#pragma once
// Console and GUI scripts of a wheel (PyPA "Entry points specification").
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

struct EntryPoint {
  std::string name;       ///< the script's file name
  std::string module;     ///< `package.module`
  std::string attribute;  ///< `main` or `Class.method`
};

/// The [console_scripts] and [gui_scripts] of entry_points.txt, in file order. Throws `bad-wheel`,
/// naming `shown` and the line, for names that are no file names and references that are malformed.
std::vector<EntryPoint> parse_entry_points(std::string_view text, std::string_view shown);

/// The script that installers write for it; `shebang` is its first line.
std::string entry_point_script(const EntryPoint& point, std::string_view shebang);

}  // namespace mlenv
