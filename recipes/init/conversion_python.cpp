// What a source says of Python itself.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/distribution.hpp"
#include "recipes/init/conversion.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

/// Of Debian and Ubuntu releases, the preferred one first: of the stable Debian that is known best.
constexpr std::array<std::string_view, 6> kPythons = {"3.11", "3.13", "3.9", "3.12", "3.10", "3.8"};
constexpr std::string_view kNoSuchPython =
    "no release of Debian or Ubuntu that mlenv knows has such a Python: `sources: {python: {url: "
    "…, "
    "sha256: …}}` brings one along";

}  // namespace

void Conversion::python_version(const SourcePlace& place, std::string_view text) {
  const std::string release = version_prefix(text, 2);
  if (release == text && release.find('.') == std::string::npos) return;  // `3`: any
  if (base_with_python(release).empty()) {
    leave_out(place, fmt::format("Python {}", text), kNoSuchPython);
    return;
  }
  if (release != text && !text.ends_with(".*")) {
    leave_out(
        place, fmt::format("Python {}", text),
        fmt::format("Python {} is the base's, with the third number that it has there", release));
  }
  draft.python = release;
}

void Conversion::python_range(const SourcePlace& place, std::string_view specifier) {
  // Its newest patch release: a range may ask for one (`>=3.11.4`), and the distribution decides
  // which.
  const auto is_in = [&](std::string_view python, std::string_view one) {
    return version_satisfies(python, one) || version_satisfies(fmt::format("{}.99", python), one);
  };
  for (const std::string_view python : kPythons) {
    const std::vector<std::string_view> all = split(specifier, '|');
    if (std::none_of(all.begin(), all.end(), [&](std::string_view one) {
          return (!trim(one).empty() || all.size() == 1) && is_in(python, trim(one));
        })) {
      continue;
    }
    draft.python = python;
    return;
  }
  leave_out(place, fmt::format("Python {}", specifier), kNoSuchPython);
}

/// A wheel for one Python alone, where that is all that is said of Python.
void Conversion::python_of_wheel(const SourcePlace& place, const Requirement& requirement) {
  const std::size_t slash = requirement.address.rfind('/');
  std::string file = requirement.address.substr(slash == std::string::npos ? 0 : slash + 1);
  file.erase(std::min(file.find('#'), file.size()));
  const auto wheel = parse_wheel_name(file);
  if (!wheel || wheel->pythons.size() != 1 || says(requirement.marker, "python_")) return;
  if (std::find(wheel->abis.begin(), wheel->abis.end(), "abi3") != wheel->abis.end()) return;
  if (!runs_on(*wheel, "x86_64") && !runs_on(*wheel, "aarch64")) return;
  const std::string_view tag = wheel->pythons.front();
  constexpr std::string_view kCPython = "cp3";
  if (!tag.starts_with(kCPython) || !all_digits(tag.substr(2))) return;
  of_wheels_.emplace(fmt::format("3.{}", tag.substr(kCPython.size())), place);
}

}  // namespace mlenv
