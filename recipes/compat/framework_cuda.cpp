#include "recipes/compat/framework_cuda.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/core.h>

#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

constexpr int kMostPatches = 40;  // JAX has many

struct FrameworkRelease {
  int major = 0;
  int minor = 0;
  int patch = kMostPatches;  ///< of a last one
};

/// Builds for a CUDA major version, or wheels for a Python, from `first` up to `last`.
struct FrameworkBuilds {
  std::string_view framework;
  std::string_view of;  ///< `12`; `3.11`
  FrameworkRelease first;
  FrameworkRelease last;
};
constexpr int kNewest = 99;
constexpr std::array<FrameworkBuilds, 7> kCudaBuilds = {
    {{"pytorch", "10", {1, 0}, {1, 12}},
     {"pytorch", "11", {1, 7}, {2, 7}},
     {"pytorch", "12", {2, 1}, {kNewest, 0}},
     {"pytorch", "13", {2, 9}, {kNewest, 0}},
     {"tensorflow", "11", {2, 4}, {2, 14}},
     {"tensorflow", "12", {2, 15}, {kNewest, 0}},
     {"jax", "11", {0, 0}, {0, 4, 25}}}};

constexpr std::array<FrameworkBuilds, 14> kPythonBuilds = {
    {{"pytorch", "3.8", {1, 4}, {2, 4}},
     {"pytorch", "3.9", {1, 8}, {2, 8}},
     {"pytorch", "3.10", {1, 11}, {kNewest, 0}},
     {"pytorch", "3.11", {1, 13}, {kNewest, 0}},
     {"pytorch", "3.12", {2, 2}, {kNewest, 0}},
     {"pytorch", "3.13", {2, 5}, {kNewest, 0}},
     {"pytorch", "3.14", {2, 9}, {kNewest, 0}},
     {"tensorflow", "3.8", {2, 2}, {2, 13}},
     {"tensorflow", "3.9", {2, 5}, {2, 20}},
     {"tensorflow", "3.10", {2, 8}, {kNewest, 0}},
     {"tensorflow", "3.11", {2, 12}, {kNewest, 0}},
     {"tensorflow", "3.12", {2, 16}, {kNewest, 0}},
     {"tensorflow", "3.13", {2, 20}, {kNewest, 0}},
     {"tensorflow", "3.14", {2, 22}, {kNewest, 0}}}};

/// Whether a release with these two numbers is allowed.
bool allows_release(std::string_view specifiers, int major, int minor, int last = kMostPatches) {
  for (int patch = 0; patch <= last; ++patch) {
    if (version_satisfies(fmt::format("{}.{}.{}", major, minor, patch), specifiers)) return true;
  }
  return false;
}

/// Whether one between the two is allowed.
bool allows_between(std::string_view specifiers, FrameworkRelease first, FrameworkRelease last) {
  constexpr int kMinors = 40;
  if (last.major == kNewest && allows_release(specifiers, first.major + 1, 0)) return true;
  for (int major = first.major; major <= last.major && major <= first.major + 1; ++major) {
    const int begin = major == first.major ? first.minor : 0;
    const int end = major == last.major ? last.minor : kMinors;
    for (int minor = begin; minor <= end; ++minor) {
      const bool newest = major == last.major && minor == last.minor;
      if (allows_release(specifiers, major, minor, newest ? last.patch : kMostPatches)) return true;
    }
  }
  return false;
}

bool has_builds(std::span<const FrameworkBuilds> all, std::string_view framework,
                std::string_view specifiers, std::string_view of) {
  const auto row = std::find_if(all.begin(), all.end(), [&](const FrameworkBuilds& one) {
    return one.framework == framework && one.of == of;
  });
  return row == all.end() || allows_between(specifiers, row->first, row->last);
}

}  // namespace

bool has_builds_for_cuda(std::string_view framework, std::string_view specifiers,
                         std::string_view major) {
  return has_builds(kCudaBuilds, framework, specifiers, major);
}

bool has_builds_for_python(std::string_view framework, std::string_view specifiers,
                           std::string_view python) {
  return has_builds(kPythonBuilds, framework, specifiers, python);
}

std::string_view cuda_of_tensorflow(std::string_view specifiers) {
  for (const std::string_view cuda : {"12", "11"}) {
    if (has_builds_for_cuda("tensorflow", specifiers, cuda)) return cuda;
  }
  return {};
}

}  // namespace mlenv
