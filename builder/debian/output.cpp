#include "builder/debian/output.hpp"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "base/paths.hpp"

namespace mlenv::debian {
namespace {

constexpr std::size_t kShownDpkgLines = 12;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

/// What dpkg says that it could not do: `configure the package `git``; empty for other lines.
std::string what_failed(std::string_view line) {
  constexpr std::string_view kPackage = "dpkg: error processing package ";
  constexpr std::string_view kArchive = "dpkg: error processing archive ";
  if (line.starts_with(kPackage)) {
    line.remove_prefix(kPackage.size());
    return fmt::format("configure the package `{}`", line.substr(0, line.find(' ')));
  }
  if (!line.starts_with(kArchive)) return {};
  line.remove_prefix(kArchive.size());
  const std::string_view file = last_part(line.substr(0, line.find(' ')));
  return fmt::format("unpack the package `{}`", file.substr(0, file.find('_')));
}

/// `Setting up git (1:2.39) ...` → `git`; empty for other lines.
std::string_view set_up_package(std::string_view line) {
  constexpr std::string_view kStart = "Setting up ";
  if (!line.starts_with(kStart)) return {};
  line.remove_prefix(kStart.size());
  return line.substr(0, line.find(' '));
}

}  // namespace

Error configuration_error(std::string_view output, int status) {
  const std::vector<std::string_view> lines = lines_of(output);
  const auto found =
      std::ranges::find_if(lines, [](std::string_view line) { return !what_failed(line).empty(); });
  const bool known = found != lines.end();
  Error error = known ? failure("base-failed", "cannot {}", what_failed(*found))
                      : failure("base-failed", "cannot configure the packages of the base");
  if (known && found + 1 != lines.end()) {
    std::string_view reason = *(found + 1);
    reason.remove_prefix(std::min(reason.find_first_not_of(' '), reason.size()));
    error.because(std::string(reason));
  } else {
    error.because(fmt::format("the scripts ended with status {}", status));
  }
  // What the script said comes before dpkg's verdict.
  const auto end = known ? found : lines.end();
  const auto count = std::min<std::ptrdiff_t>(end - lines.begin(), kShownDpkgLines);
  std::string last;
  for (auto line = end - count; line != end; ++line) last += fmt::format("\n    {}", *line);
  if (!last.empty()) error.because("its last lines were:" + last);
  return error;
}

std::vector<Complaint> complaints(std::string_view output) {
  std::vector<Complaint> found;
  std::string package;
  for (const std::string_view line : lines_of(output)) {
    if (const std::string_view name = set_up_package(line); !name.empty()) package = name;
    if (line.starts_with("Error: ") || line.starts_with("error: ")) {
      found.push_back({package, std::string(line)});
    }
  }
  return found;
}

}  // namespace mlenv::debian
