#include "recipes/init/conda_packages.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/init/conda_names.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kLibraryOfConda =
    "libraries and tools of conda's, no Python packages: wheels bring their own libraries, and "
    "Debian's programs can stand in `system`";
constexpr std::string_view kNotInTable =
    "conda's names that mlenv does not know: add to `packages` what PyPI has, by the name that it "
    "has there";
constexpr std::string_view kDoneOtherwise = "not needed: mlenv or Python does itself what these do";
constexpr std::string_view kDebiansVersion = "the version is the one that Debian has";
constexpr std::string_view kOfWindowsAlone = "packages for Windows alone";
constexpr std::string_view kOfR =
    "R and its packages: Debian's are called `r-base` and `r-cran-…`, and can stand in `system`";
constexpr std::string_view kBuilds =
    "channels and builds are conda's: the same version is taken from Python's index";
constexpr std::string_view kNoSuchVersion =
    "versions in words that Python's index does not have: any version is asked for";

}  // namespace

bool is_of_conda_exports(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {
      "_libgcc_mutex", "_openmp_mutex", "ld_impl_linux-64", "libgcc-ng", "python_abi"};
  return is_among(kNames, name);
}

void CondaPackages::package(const SourcePlace& place, const std::string& text) {
  const CondaSpec spec = conda_spec(text);
  if (spec.name.empty()) return to_.leave_out(place, text, "it names no package");
  if (spec.build.starts_with("pypi")) {  // `conda list --export` has what pip installed, too
    return to_.python_package(place, spec.name + "==" + spec.number());
  }
  if (spec.name == "python") return python(place, text, spec);
  if (is_of_cuda(place, text, spec)) return;
  const CondaName known = conda_name(spec.name);
  const bool all = lists_all_ || !spec.build.empty();
  switch (known.kind) {
    case CondaKind::python:
      return python_package(place, text, spec, known.name);
    case CondaKind::system:
      if (known.brought_along && all) break;
      return debian(place, text, spec, known.name);
    case CondaKind::needless:
      return to_.leave_out_with_others(place, spec.name, kDoneOtherwise);
    case CondaKind::windows:
      return to_.leave_out_with_others(place, spec.name, kOfWindowsAlone);
    case CondaKind::r:
      return to_.leave_out_with_others(place, spec.name, kOfR);
    case CondaKind::unknown:
      return to_.leave_out_with_others(place, text, kNotInTable);
    case CondaKind::library:
      break;
  }
  to_.leave_out_with_others(place, spec.name, kLibraryOfConda);
}

void CondaPackages::python(const SourcePlace& place, const std::string& text,
                           const CondaSpec& spec) {
  if (spec.version.empty()) return;
  if (spec.version.find_first_of("<>!~|,") == std::string::npos) {
    return to_.python_version(place, spec.number());
  }
  const auto specifier = pep440_specifier(spec);
  if (!specifier) return to_.leave_out(place, text, "alternatives have no words in a recipe");
  to_.python_range(place, *specifier);
}

bool CondaPackages::is_of_cuda(const SourcePlace& place, const std::string& text,
                               const CondaSpec& spec) {
  constexpr std::array<std::string_view, 5> kReleases = {"cudatoolkit", "pytorch-cuda",
                                                         "cuda-version", "cuda-toolkit", "cuda"};
  if (is_among(kReleases, spec.name)) {
    constexpr std::string_view kLabel = "cuda-";  // nvidia/label/cuda-11.8.0
    const std::size_t label = spec.channel.rfind(kLabel);
    if (spec.number().empty() && label != std::string::npos) {
      to_.cuda_release(place, spec.channel.substr(label + kLabel.size()));
    } else if (spec.number().empty()) {
      to_.leave_out(place, text, "it names no release");
    } else {
      to_.cuda_release(place, spec.number());
    }
    return true;
  }
  if (spec.name == "cpuonly") {
    to_.leave_out(place, text,
                  "builds without CUDA: write `cuda: cpu`, and for PyTorch name an index that has "
                  "such builds in `sources`");
    return true;
  }
  if (spec.name == "cudatoolkit-dev" || spec.name == "cuda-nvcc" || spec.name == "cuda-compiler") {
    to_.leave_out(place, text, "CUDA's compiler comes with `libraries: {nvcc: true}`");
    return true;
  }
  return false;
}

void CondaPackages::python_package(const SourcePlace& place, const std::string& text,
                                   const CondaSpec& spec, const std::string& name) {
  if (!spec.build.empty() || !spec.channel.empty()) {
    const std::string shown = spec.channel.empty() ? spec.name : spec.channel + "::" + spec.name;
    to_.leave_out_with_others(
        place, spec.build.empty() ? shown : fmt::format("{}={}", shown, spec.build), kBuilds);
  }
  const auto specifier = pep440_specifier(spec);
  if (!specifier) to_.leave_out_with_others(place, text, kNoSuchVersion);
  to_.python_package(place, name + specifier.value_or(""));
  const std::string cuda = name == "torch" ? cuda_of_build(spec.build) : std::string{};
  if (!cuda.empty() && to_.draft.cuda.empty()) to_.cuda_release(place, cuda);
}

void CondaPackages::debian(const SourcePlace& place, const std::string& text, const CondaSpec& spec,
                           const std::string& names) {
  if (!spec.version.empty()) to_.leave_out_with_others(place, text, kDebiansVersion);
  for (const std::string_view name : split(names, ' ')) to_.system_package(place, name);
}

bool is_conda_list(std::string_view text) {
  std::size_t listed = 0;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view one = trim(line);
    if (one == "@EXPLICIT") return true;
    if (one.starts_with('#') && says(one, "conda create --name")) return true;
    if (one.empty() || one.front() == '#') continue;
    // name=1.2=build
    const std::size_t first = one.find('=');
    const std::size_t second = first == std::string_view::npos ? first : one.find('=', first + 1);
    if (second == std::string_view::npos || second == first + 1 ||
        one.find_first_of(" <>;@[") != std::string_view::npos ||
        one.find('=', second + 1) != std::string_view::npos) {
      return false;
    }
    ++listed;
  }
  return listed > 0;
}

void convert_conda_list(const std::string& shown, std::string_view text, Conversion& to) {
  CondaPackages packages(to);
  packages.set_lists_all(true);
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const std::string_view one = trim(line);
    if (one.empty() || one.front() == '#' || one == "@EXPLICIT") continue;
    packages.package({shown, number}, std::string(one));
  }
}

}  // namespace mlenv
