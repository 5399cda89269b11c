#include "recipes/compat/old_tensorflow.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kFirstForCuda11 = "2.5";
constexpr std::string_view kFirstWithPackages = "2.14";
constexpr std::string_view kOldSuffix = "-cu11";
/// The cuDNN of these releases is 8.
constexpr std::array<std::string_view, 8> kLoaded = {
    "cublas", "cuda-cupti", "cuda-runtime", "cudnn", "cufft", "curand", "cusolver", "cusparse"};

bool allows_minor(std::string_view specifiers, int major, int minor) {
  constexpr int kPatches = 10;
  for (int patch = 0; patch < kPatches; ++patch) {
    if (version_satisfies(fmt::format("{}.{}.{}", major, minor, patch), specifiers)) return true;
  }
  return false;
}

/// Whether 2.MINOR or a later release is allowed.
bool allows_from(std::string_view specifiers, int first_minor) {
  constexpr int kBeyond = 100;
  for (int minor = first_minor; minor < kBeyond; ++minor) {
    if (allows_minor(specifiers, 2, minor)) return true;
  }
  return allows_minor(specifiers, 3, 0);
}

}  // namespace

bool is_old_tensorflow(std::string_view version) {
  return !is_older(version, kFirstForCuda11) && is_older(version, kFirstWithPackages);
}

bool is_before_tensorflow_cpu(std::string_view specifiers) {
  return !trim(specifiers).empty() && !allows_from(specifiers, 1);
}

bool wants_old_tensorflow(std::string_view specifiers) {
  constexpr int kFirstMinor = 14;
  if (allows_from(specifiers, kFirstMinor)) return false;
  constexpr int kFirstOfCuda11 = 5;
  for (int minor = kFirstOfCuda11; minor < kFirstMinor; ++minor) {
    if (allows_minor(specifiers, 2, minor)) return true;
  }
  return false;
}

std::vector<std::string> old_tensorflow_libraries() {
  std::vector<std::string> requirements;
  for (const std::string_view name : kLoaded) {
    requirements.push_back(
        fmt::format("nvidia-{}{}{}", name, kOldSuffix, name == "cudnn" ? "<9" : ""));
  }
  return requirements;
}

std::string nvidia_library_folder(std::string_view package) {
  constexpr std::string_view kMaker = "nvidia-";
  if (!package.starts_with(kMaker) || !package.ends_with(kOldSuffix)) return {};
  std::string name(
      package.substr(kMaker.size(), package.size() - kMaker.size() - kOldSuffix.size()));
  if (std::find(kLoaded.begin(), kLoaded.end(), name) == kLoaded.end()) return {};
  std::replace(name.begin(), name.end(), '-', '_');
  return fmt::format("nvidia/{}/lib", name);
}

}  // namespace mlenv
