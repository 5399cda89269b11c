#include "builder/entry_points.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

bool is_dotted_name(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.back() != '.' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '.' || c >= 0x80;
         });
}

EntryPoint parse_line(std::string_view line, std::string_view shown, int number) {
  const std::size_t equals = line.find('=');
  const std::string_view name = trim(line.substr(0, equals));
  std::string_view value = equals == std::string_view::npos ? "" : trim(line.substr(equals + 1));
  value = trim(value.substr(0, value.find('[')));  // extras are of no concern here
  const std::size_t colon = value.find(':');
  const std::string_view module = trim(value.substr(0, colon));
  const std::string_view attribute =
      colon == std::string_view::npos ? "" : trim(value.substr(colon + 1));
  const bool named = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of("/\\") == std::string_view::npos &&
                     name.find('\0') == std::string_view::npos;
  if (!named || !is_dotted_name(module) || !is_dotted_name(attribute)) {
    throw failure("bad-wheel", "`{}` has a malformed entry_points.txt", shown)
        .because(fmt::format("line {}: `{}` is not `name = module:function`", number, line));
  }
  return {std::string(name), std::string(module), std::string(attribute)};
}

}  // namespace

std::vector<EntryPoint> parse_entry_points(std::string_view text, std::string_view shown) {
  std::vector<EntryPoint> points;
  bool wanted = false;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      wanted = line == "[console_scripts]" || line == "[gui_scripts]";
    } else if (wanted) {
      points.push_back(parse_line(line, shown, number));
    }
  }
  return points;
}

// The text is what pip, uv and distlib all write, so that installed trees stay comparable.
std::string entry_point_script(const EntryPoint& point, std::string_view shebang) {
  const std::string import_name = point.attribute.substr(0, point.attribute.find('.'));
  return fmt::format(R"({}
# -*- coding: utf-8 -*-
import sys
from {} import {}
if __name__ == "__main__":
    if sys.argv[0].endswith("-script.pyw"):
        sys.argv[0] = sys.argv[0][:-11]
    elif sys.argv[0].endswith(".exe"):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit({}())
)",
                     shebang, point.module, import_name, point.attribute);
}

}  // namespace mlenv
