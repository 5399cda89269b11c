// What a source says of Python itself.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "base/error.hpp"
#include "recipes/compat/framework_cuda.hpp"
#include "recipes/distribution.hpp"
#include "recipes/init/conversion.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/project_name.hpp"
#include "recipes/resolve/python_build.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

/// Of Debian and Ubuntu releases, the preferred one first: of the stable Debian that is known best.
constexpr std::array<std::string_view, 6> kPythons = {"3.11", "3.13", "3.9", "3.12", "3.10", "3.8"};
constexpr std::string_view kNoSuchPython =
    "no release of Debian or Ubuntu that mlenv knows has such a Python: {}`sources: {{python: "
    "{{url: …, sha256: …}}}}` brings one along";
constexpr std::array<int, 4> kPatches = {0, 1, 2, 3};
/// From the oldest on: what came out for an older one is more likely to have wheels for these.
constexpr std::array<std::string_view, 6> kNearOld = {"3.9", "3.8", "3.10", "3.11", "3.12", "3.13"};
constexpr std::array<std::string_view, 6> kNearNew = {"3.13", "3.12", "3.11", "3.10", "3.9", "3.8"};

/// PyTorch's releases (`2.4`) that those of torchvision came out with which are asked for (its
/// README, "Installation"); empty: any will do.
std::vector<std::string> torches_of_vision(const std::vector<std::string>& packages) {
  constexpr int kOldestVision = 8;  // of 1.7
  constexpr int kVisionOfTwo = 15;  // of 2.0
  constexpr int kNewestVision = 40;
  std::vector<std::string> torches;
  for (const std::string& text : packages) {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    if (one == nullptr || one->specifier.empty() || one->normalised_name() != "torchvision")
      continue;
    for (int minor = kOldestVision; minor <= kNewestVision; ++minor) {
      const bool some = std::any_of(kPatches.begin(), kPatches.end(), [&](int patch) {
        return version_satisfies(fmt::format("0.{}.{}", minor, patch), one->specifier);
      });
      if (!some) continue;
      torches.push_back(minor < kVisionOfTwo ? fmt::format("1.{}", minor - 1)
                                             : fmt::format("2.{}", minor - kVisionOfTwo));
    }
  }
  return torches;
}

/// `7` of `3.7`; -1: not a Python 3.
int minor_number(std::string_view release) {
  constexpr std::string_view kThree = "3.";
  if (!release.starts_with(kThree)) return -1;
  const std::string_view digits = release.substr(kThree.size());
  if (digits.empty() || digits.size() > 2 || !all_digits(digits)) return -1;
  int minor = 0;
  for (const char c : digits) minor = 10 * minor + (c - '0');
  return minor;
}

/// Its newest patch release: a range may ask for one (`>=3.11.4`), and the distribution decides
/// which. `||` stands between alternatives.
bool is_python_in(std::string_view python, std::string_view specifier) {
  const std::vector<std::string_view> all = split(specifier, '|');
  return std::any_of(all.begin(), all.end(), [&](std::string_view one) {
    one = trim(one);
    if (one.empty() && all.size() > 1) return false;
    return version_satisfies(python, one) || version_satisfies(fmt::format("{}.99", python), one);
  });
}

/// Of a range the Python that is nearest to those which releases have; empty: none.
std::string release_in(std::string_view specifier) {
  constexpr int kNewestOld = 7;
  constexpr int kNewestKnown = 30;
  for (int minor = kNewestOld; minor >= 0; --minor) {
    const std::string python = fmt::format("3.{}", minor);
    if (is_python_in(python, specifier)) return python;
  }
  for (int minor = kNewestOld + 1; minor <= kNewestKnown; ++minor) {
    const std::string python = fmt::format("3.{}", minor);
    if (is_python_in(python, specifier)) return python;
  }
  return {};
}

bool has_build(std::string_view release) {
  return std::find(kBuildPythons.begin(), kBuildPythons.end(), release) != kBuildPythons.end();
}

}  // namespace

void Conversion::python_version(const SourcePlace& place, std::string_view text) {
  const std::string release = version_prefix(text, 2);
  if (release == text && release.find('.') == std::string::npos) return;  // `3`: any
  if (base_with_python(release).empty()) {
    no_such_python_ = {place, fmt::format("Python {}", text), release};
    return;
  }
  if (release != text && !text.ends_with(".*")) {
    leave_out(
        place, fmt::format("Python {}", text),
        fmt::format("Python {} is the base's, with the third number that it has there", release));
  }
  draft.python = release;
  python_range_.clear();
}

void Conversion::python_range(const SourcePlace& place, std::string_view specifier) {
  for (const std::string_view python : kPythons) {
    if (!is_python_in(python, specifier)) continue;
    draft.python = python;
    python_range_ = specifier;
    return;
  }
  no_such_python_ = {place, fmt::format("Python {}", specifier), release_in(specifier)};
}

/// Where nothing else names a Python, a project that is installed does.
void Conversion::python_of_projects() {
  if (!draft.python.empty() || !draft.base.empty() || no_such_python_) return;
  std::vector<fs::path> folders = projects_;
  for (const std::string& text : draft.packages) {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    if (one != nullptr && one->address.starts_with('.')) folders.push_back(folder_ / one->address);
  }
  for (const fs::path& folder : folders) {
    std::error_code unknown;
    if (!fs::is_directory(folder, unknown) || !holds(fs::weakly_canonical(folder, unknown)))
      continue;
    std::optional<std::string> range;
    try {
      range = project_python(folder);
    } catch (const Error&) {  // what is wrong with it is told where it is built
      continue;
    }
    if (range) return python_range({draft.source, 0}, *range);
  }
}

/// Of a range the Python that a pinned framework has wheels for.
void Conversion::fit_python_to_framework() {
  if (python_range_.empty() || draft.python.empty() || !draft.base.empty()) return;
  const std::string first = draft.python;
  const std::array<std::string_view, 1> chosen = {first};
  if (!framework_python(chosen).empty()) return;
  std::vector<std::string_view> others;
  for (const std::string_view python : kPythons) {
    if (is_python_in(python, python_range_)) others.push_back(python);
  }
  const std::string python = framework_python(others);
  if (python.empty()) return;
  draft.python = python;
  note({draft.source, 0}, draft.framework.empty() ? "torchvision" : draft.framework,
       fmt::format("Python {}, since it has no wheels for {}", python, first));
}

/// The first of `pythons` that a pinned framework has wheels for, and torchvision that came out
/// with it; empty: none.
std::string Conversion::framework_python(std::span<const std::string_view> pythons) const {
  const auto read = parse_requirement(draft.framework);
  const auto* framework = std::get_if<Requirement>(&read);
  const bool pinned = framework != nullptr && !framework->specifier.empty();
  const std::vector<std::string> torches = torches_of_vision(draft.packages);
  const auto fits = [&](std::string_view python) {
    if (pinned && !has_builds_for_python(framework->name, framework->specifier, python))
      return false;
    return torches.empty() || std::any_of(torches.begin(), torches.end(), [&](const auto& one) {
             return has_builds_for_python("pytorch", "==" + one + ".*", python);
           });
  };
  const auto found = std::find_if(pythons.begin(), pythons.end(), fits);
  return found == pythons.end() ? std::string() : std::string(*found);
}

void Conversion::note_old_framework() {
  note({draft.source, 0}, draft.framework.empty() ? "torchvision" : draft.framework,
       "its wheels are for Pythons older than those of Debian and Ubuntu that mlenv knows: "
       "`sources: "
       "{python: {url: …, sha256: …}}` brings one along, or a newer release has others");
}

/// In place of one that no release has, the next one that a release has: the newest of all is
/// further from what its packages came out for.
void Conversion::choose_nearest_python() {
  if (!no_such_python_) return;
  const NoSuchPython wanted = *std::exchange(no_such_python_, std::nullopt);
  const bool any_base = draft.base.empty() || is_package_base(draft.base);
  const std::array<std::string_view, 1> release = {wanted.release};
  if (draft.python.empty() && any_base && has_build(wanted.release) &&
      !framework_python(release).empty()) {
    draft.python = wanted.release;
    return note(wanted.place, wanted.text,
                fmt::format("no release of Debian or Ubuntu that mlenv knows has Python {}: the "
                            "build that uv installs is taken",
                            wanted.release));
  }
  std::string nearest;
  if (const int minor = minor_number(wanted.release);
      minor >= 0 && draft.python.empty() && draft.base.empty()) {
    const std::span<const std::string_view> pythons = minor < 8 ? kNearOld : kNearNew;
    nearest = framework_python(pythons);
    if (nearest.empty()) {
      nearest = pythons.front();
      note_old_framework();
    }
    draft.python = nearest;
  }
  leave_out(wanted.place, wanted.text,
            fmt::format(kNoSuchPython,
                        nearest.empty() ? "" : fmt::format("{} is the nearest; ", nearest)));
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
