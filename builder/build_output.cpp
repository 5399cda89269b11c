#include "builder/build_output.hpp"

#include <algorithm>
#include <array>

namespace mlenv {
namespace {

constexpr std::string_view kCall = "  File \"";

/// Of a line of a traceback (`  File "PATH", line 5, in run`): whether the call is a build tool's
/// or the interpreter's own.
bool is_tools_call(std::string_view line) {
  if (!line.starts_with(kCall)) return false;
  const std::string_view file =
      line.substr(kCall.size(), line.find('"', kCall.size()) - kCall.size());
  constexpr auto kTools = std::to_array<std::string_view>(
      {"/setuptools/", "/distutils/", "/wheel/", "/skbuild/", "/scikit_build_core/",
       "/poetry/core/", "/hatchling/", "/mesonpy/", "/numpy/distutils/", "/pip/"});
  return file.starts_with("<frozen ") || file.starts_with("/usr/lib/python3") ||
         std::any_of(kTools.begin(), kTools.end(), [&](std::string_view tool) {
           return file.find(tool) != std::string_view::npos;
         });
}

/// Code and marks under a call.
bool is_of_call(std::string_view line) { return line.starts_with("    "); }

std::string without_tools_calls(std::string_view said) {
  std::string kept;
  bool passed_by = false;
  while (!said.empty()) {
    const std::string_view line = said.substr(0, said.find('\n'));
    said.remove_prefix(std::min(line.size() + 1, said.size()));
    passed_by = is_tools_call(line) || (passed_by && is_of_call(line));
    if (!passed_by) kept.append(line).append("\n");
  }
  while (kept.ends_with('\n')) kept.pop_back();
  return kept;
}

}  // namespace

std::string shown_output(std::string_view said, std::size_t most) {
  std::string shown = without_tools_calls(said);
  if (shown.size() <= most) return shown;
  shown.erase(0, shown.size() - most);
  const std::size_t line = shown.find('\n');
  return "…\n" + (line == std::string::npos ? shown : shown.substr(line + 1));
}

}  // namespace mlenv
