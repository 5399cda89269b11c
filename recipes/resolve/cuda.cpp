#include "recipes/resolve/cuda.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "recipes/compat/cuda_releases.hpp"
#include "recipes/compat/framework_builds.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Majors whose packages are named `nvidia-…-cuNN`; from 13 on the name has no suffix.
constexpr std::array<std::string_view, 2> kSuffixedMajors = {"11", "12"};

/// Packages whose version is the toolkit release they come from. The runtime decides, and what
/// makes device code must not be newer than it: its output would ask for a newer driver.
constexpr std::array<std::string_view, 5> kReleasePackages = {
    "nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "nvidia-cuda-nvcc", "nvidia-cuda-cupti",
    "nvidia-nvjitlink"};
/// Parts of nvcc that are packages of their own from 13 on.
constexpr std::array<std::string_view, 2> kCompilerParts = {"nvidia-cuda-crt", "nvidia-nvvm"};

constexpr std::string_view kDigits = "0123456789";

bool is_suffixed(std::string_view major) {
  return std::find(kSuffixedMajors.begin(), kSuffixedMajors.end(), major) != kSuffixedMajors.end();
}

/// CUDA major that a package belongs to, empty for none. NCCL counts: its builds for two majors
/// install the same file.
std::string cuda_major(const LockedWheel& wheel) {
  const std::string_view name = wheel.name;
  if (name == "cuda-toolkit" || name == "nvidia-cuda-runtime") {
    return std::string(major_of(wheel.version));
  }
  if (name.starts_with("nvidia-")) {
    const std::size_t suffix = name.rfind("-cu");
    if (suffix == std::string_view::npos) return {};
    const std::string_view major = name.substr(suffix + 3);
    return all_digits(major) ? std::string(major) : std::string{};
  }
  if (name.starts_with("jax-cuda") || name.starts_with("cupy-cuda")) {
    const std::string_view rest = name.substr(name.find("cuda") + 4);
    // `cupy-cuda113` is of 11.3, `cupy-cuda11x` of any 11.
    return std::string(rest.substr(0, std::min<std::size_t>(2, rest.find_first_not_of(kDigits))));
  }
  return {};
}

/// A toolkit package, a runtime, or what a framework holds itself tells the release, in that order
/// of trust.
std::optional<std::string> toolkit_release(const std::vector<LockedWheel>& wheels) {
  std::optional<std::string> release;
  for (const LockedWheel& wheel : wheels) {
    if (wheel.name == "cuda-toolkit") return version_prefix(wheel.version, 2);
    if (wheel.name == "nvidia-cuda-runtime" || wheel.name.starts_with("nvidia-cuda-runtime-cu")) {
      release = version_prefix(wheel.version, 2);
    }
  }
  for (const LockedWheel& wheel : wheels) {
    if (release) break;
    std::string inside = cuda_inside(wheel.name, wheel.version, wheel.file);
    if (!cuda_driver_floor(inside).empty()) release = std::move(inside);
  }
  return release;
}

}  // namespace

std::vector<std::string> cuda_constraints(std::string_view release) {
  // CUDA before 11 is in no package: frameworks hold its libraries themselves.
  if (!has_minor_compatibility(release)) return no_cuda_constraints();
  const std::string major = major_of(release);
  const std::string suffix = is_suffixed(major) ? fmt::format("-cu{}", major) : "";
  std::vector<std::string> constraints = {fmt::format("cuda-toolkit=={}.*", release)};
  for (const std::string_view package : kReleasePackages) {
    constraints.push_back(fmt::format("{}{}=={}.*", package, suffix, release));
  }
  if (suffix.empty()) {
    for (const std::string_view package : kCompilerParts) {
      constraints.push_back(fmt::format("{}=={}.*", package, release));
    }
  }
  for (const std::string_view other : kSuffixedMajors) {
    if (other != major) constraints.push_back(fmt::format("nvidia-cuda-runtime-cu{}<0", other));
  }
  if (!suffix.empty()) constraints.emplace_back("nvidia-cuda-runtime<0");
  return constraints;
}

std::vector<std::string> no_cuda_constraints() {
  std::vector<std::string> constraints = {"cuda-toolkit<0", "nvidia-cuda-runtime<0"};
  for (const std::string_view major : kSuffixedMajors) {
    constraints.push_back(fmt::format("nvidia-cuda-runtime-cu{}<0", major));
  }
  return constraints;
}

std::variant<std::optional<LockedCuda>, Conflict> locked_cuda(
    const std::vector<LockedWheel>& wheels) {
  std::map<std::string, std::vector<std::string>> by_major;
  for (const LockedWheel& wheel : wheels) {
    const std::string major = cuda_major(wheel);
    if (!major.empty()) by_major[major].push_back(wheel.name + ' ' + wheel.version);
  }
  if (by_major.size() > 1) {
    Conflict conflict;
    std::vector<std::string> majors;
    for (const auto& [major, packages] : by_major) {
      majors.push_back(major);
      conflict.facts.push_back(fmt::format("CUDA {}: {}", major, listed(packages, 3)));
    }
    conflict.headline = fmt::format("the wheels carry CUDA {} in one image", join(majors, " and "));
    conflict.hint = "set `cuda` to one of them, so that all packages agree on it";
    return conflict;
  }
  const std::optional<std::string> release = toolkit_release(wheels);
  if (!release) return std::optional<LockedCuda>{};
  const std::string_view floor = cuda_driver_floor(*release);
  if (floor.empty()) {
    Conflict conflict;
    conflict.headline =
        fmt::format("the wheels carry CUDA {}, which this mlenv does not know", *release);
    conflict.facts = {"the oldest driver that runs it is unknown here"};
    conflict.hint = "set `cuda` to an older release, or use a newer mlenv";
    return conflict;
  }
  return std::optional<LockedCuda>(LockedCuda{*release, std::string(floor), {}, {}, {}});
}

}  // namespace mlenv
