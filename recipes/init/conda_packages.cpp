#include "recipes/init/conda_packages.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "recipes/init/conda_names.hpp"
#include "recipes/init/known_repositories.hpp"
#include "recipes/resolve/versions.hpp"
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
constexpr std::string_view kWithoutCuda =
    "PyPI's builds are without CUDA: for a build with it name its wheel, `NAME @ URL`, or the "
    "project's own page of wheels with `find-links`";
constexpr std::string_view kOfNoImage =
    "folders of conda's environment, which an image does not have: libraries and programs are "
    "where the system looks for them";
constexpr std::string_view kNoSuchVersion =
    "versions in words that Python's index does not have: any version is asked for";

/// Names on PyPI that say for which CUDA they were built (their documentations, "Installation").
struct NameOfRelease {
  std::string_view conda;
  std::string_view on_pypi;
};
constexpr std::array<NameOfRelease, 8> kNamesOfReleases = {{{"cupy", "cupy-cuda{}x"},
                                                            {"cudf", "cudf-cu{}"},
                                                            {"cuml", "cuml-cu{}"},
                                                            {"cugraph", "cugraph-cu{}"},
                                                            {"dask-cudf", "dask-cudf-cu{}"},
                                                            {"cucim", "cucim-cu{}"},
                                                            {"cuspatial", "cuspatial-cu{}"},
                                                            {"rmm", "rmm-cu{}"}}};

/// `11.1` of `dgl-cuda11.1`, `11.7` of the channel `dglteam/label/cu117`.
std::string cuda_of_dgl(const CondaSpec& spec) {
  constexpr std::string_view kName = "dgl-cuda";
  constexpr std::string_view kLabel = "/label/cu";
  if (spec.name.starts_with(kName)) return spec.name.substr(kName.size());
  const std::size_t label = spec.channel.rfind(kLabel);
  if (spec.name != "dgl" || label == std::string::npos) return {};
  const std::string digits = spec.channel.substr(label + kLabel.size());
  if (digits.size() < 3 || !all_digits(digits)) return {};
  return digits.substr(0, digits.size() - 1) + '.' + digits.back();
}

/// `ffmpeg=6.1.1` of the address of its file.
std::string shown_spec(const std::string& text, const CondaSpec& spec) {
  return says(text, "://") ? fmt::format("{}={}", spec.name, spec.number()) : text;
}

}  // namespace

bool names_conda_folder(std::string_view value) {
  constexpr std::array<std::string_view, 4> kOfConda = {"$CONDA_", "${CONDA_", "$PIXI_", "${PIXI_"};
  return std::any_of(kOfConda.begin(), kOfConda.end(),
                     [&](std::string_view one) { return says(value, one); });
}

void conda_variable(const SourcePlace& place, const std::string& name, const std::string& value,
                    Conversion& to) {
  if (!names_conda_folder(value)) return to.env(place, name, value);
  to.leave_out_with_others(place, fmt::format("{}={}", name, value), kOfNoImage);
}

bool is_of_conda_exports(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {
      "_libgcc_mutex", "_openmp_mutex", "ld_impl_linux-64", "libgcc-ng", "python_abi"};
  return is_among(kNames, name);
}

void CondaPackages::package(const SourcePlace& place, const std::string& whole,
                            const std::optional<std::string>& on_pypi) {
  const CondaSpec spec = conda_spec(whole);
  const std::string text = shown_spec(whole, spec);
  if (spec.name.empty()) return to_.leave_out(place, text, "it names no package");
  if (spec.build.starts_with("pypi")) {  // `conda list --export` has what pip installed, too
    return to_.python_package(place, spec.name + "==" + spec.number());
  }
  if (spec.name == "python") return python(place, text, spec);
  if (is_of_cuda(place, text, spec) || is_of_release(place, spec)) return;
  if (is_held_back(spec)) return python_package(place, text, spec, spec.name);
  const CondaName known = conda_name(spec.name);
  const bool all = lists_all_ || !spec.build.empty();
  switch (known.kind) {
    case CondaKind::python:
      return python_package(place, text, spec, known.name);
    case CondaKind::system:
      if (known.brought_along && all) break;
      return debian(place, text, spec, known.name);
    case CondaKind::needless:
      if (spec.name == "pip" && (spec.version.empty() || all)) return;  // for its own list
      return to_.leave_out_with_others(place, spec.name, kDoneOtherwise);
    case CondaKind::windows:
      return to_.leave_out_with_others(place, spec.name, kOfWindowsAlone);
    case CondaKind::r:
      return to_.leave_out_with_others(place, spec.name, kOfR);
    case CondaKind::unknown:
      return unknown_package(place, text, spec, on_pypi);
    case CondaKind::library:
      break;
  }
  to_.leave_out_with_others(place, spec.name, kLibraryOfConda);
}

void CondaPackages::unknown_package(const SourcePlace& place, const std::string& text,
                                    const CondaSpec& spec,
                                    const std::optional<std::string>& on_pypi) {
  if (const std::string address = repository_of_package(spec.name); !address.empty()) {
    return to_.leave_out(place, text, fmt::format(kOfRepository, spec.name, address));
  }
  if (!on_pypi) return to_.leave_out_with_others(place, text, kNotInTable);
  if (on_pypi->empty()) return to_.leave_out_with_others(place, spec.name, kLibraryOfConda);
  python_package(place, text, spec, *on_pypi);
}

void CondaPackages::python(const SourcePlace& place, const std::string& text,
                           const CondaSpec& spec) {
  if (spec.version.empty()) return;
  if (spec.version.find_first_of("<>!~|,") == std::string::npos) {
    return to_.python_version(place, spec.number());
  }
  std::vector<std::string> alternatives;
  for (const std::string_view one : split(spec.version, '|')) {
    const auto specifier = pep440_specifier({{}, spec.name, std::string(one), spec.build});
    if (!specifier) return to_.leave_out(place, text, "no versions that a recipe has words for");
    if (!specifier->empty()) alternatives.push_back(*specifier);
  }
  to_.python_range(place, join(alternatives, "||"));
}

/// A release of setuptools that somebody wants to stay below: its successors lack what packages
/// import (`pkg_resources`). An export has the one that happened to be there.
bool CondaPackages::is_held_back(const CondaSpec& spec) const {
  return spec.name == "setuptools" && !lists_all_ && spec.build.empty() &&
         spec.version.find_first_of("<=") != std::string::npos &&
         (!spec.version.starts_with(">=") || spec.version.find('<') != std::string::npos);
}

bool CondaPackages::is_of_release(const SourcePlace& place, const CondaSpec& spec) {
  if (const std::string cuda = cuda_of_dgl(spec); !cuda.empty()) {
    to_.leave_out_with_others(place, spec.name == "dgl" ? spec.channel + "::dgl" : spec.name,
                              kWithoutCuda);
    python_package(place, spec.name, {{}, "dgl", spec.version, {}}, "dgl");
    if (to_.draft.cuda.empty()) to_.cuda_release(place, cuda);
    return true;
  }
  const auto* const known =
      std::find_if(kNamesOfReleases.begin(), kNamesOfReleases.end(),
                   [&](const NameOfRelease& one) { return one.conda == spec.name; });
  if (known == kNamesOfReleases.end()) return false;
  of_release_.push_back({place, spec, known->on_pypi});
  return true;
}

void CondaPackages::finish() {
  if (of_all_ && to_.draft.cuda.empty() && !to_.draft.framework.empty()) {
    to_.cuda_release(of_all_->place, of_all_->spec.number());
  }
  for (const OfRelease& one : std::exchange(of_release_, {})) {
    const std::string& cuda = to_.draft.cuda;
    const std::string name = fmt::format(
        fmt::runtime(one.on_pypi), cuda.empty() || cuda == "cpu" ? "12" : version_prefix(cuda, 1));
    if (cuda.empty()) {
      to_.note(one.place, one.spec.name,
               "taken for CUDA 12, since nothing names a release: PyPI "
               "has a package for each");
    }
    python_package(one.place, one.spec.name, one.spec, name);
  }
}

bool CondaPackages::is_of_cuda(const SourcePlace& place, const std::string& text,
                               const CondaSpec& spec) {
  constexpr std::array<std::string_view, 5> kReleases = {"cudatoolkit", "pytorch-cuda",
                                                         "cuda-version", "cuda-toolkit", "cuda"};
  if (lists_all_ && spec.name == "cuda-version" && !spec.number().empty()) {
    of_all_ = {place, spec, {}};  // it came along: with whom, the end tells
    return true;
  }
  if (is_among(kReleases, spec.name)) {
    constexpr std::string_view kLabel = "cuda-";  // nvidia/label/cuda-11.8.0
    const std::size_t label = spec.channel.rfind(kLabel);
    if (spec.number().empty() && label != std::string::npos) {
      to_.cuda_release(place, spec.channel.substr(label + kLabel.size()));
    } else if (spec.number().empty()) {
      to_.leave_out(place, text, "it names no release");
    } else if (spec.version.starts_with('>') && spec.version.find(',') == std::string::npos) {
      to_.leave_out(place, text,
                    "any release from there on: without `cuda` it is the one that the framework's "
                    "wheels bring");
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
    to_.leave_out(
        place, text,
        "CUDA's compiler: with `cuda: \"13.0\"` `libraries: {nvcc: true}` brings it, Python "
        "packages of CUDA 12 and 11 bring none");
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
  auto specifier = pep440_specifier(spec);
  // OpenCV's wheels have a number more than its releases: 4.5.3.56.
  const bool exact = specifier && specifier->starts_with("==") && !specifier->ends_with(".*");
  if (exact && name.starts_with("opencv-")) *specifier += ".*";
  if (!specifier) to_.leave_out_with_others(place, text, kNoSuchVersion);
  const std::string extras =
      spec.extras.empty() || name.ends_with(']') ? "" : fmt::format("[{}]", spec.extras);
  to_.python_package(place, name + extras + specifier.value_or(""));
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
  packages.finish();
}

}  // namespace mlenv
