#include "recipes/init/host_choice.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <span>

#include <fmt/core.h>

#include "recipes/compat/cuda_releases.hpp"
#include "recipes/distribution.hpp"
#include "recipes/requirement.hpp"
#include "recipes/requirement_name.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

const Distribution* distribution_of(std::string_view base) {
  return find_distribution(base.substr(0, base.find(':')));
}

/// CUDA majors that a framework's builds on the default index are for, newest first.
constexpr std::array<std::string_view, 2> kBoth = {"13", "12"};
constexpr std::array<std::string_view, 1> kTwelve = {"12"};

std::string package_of(const std::string& framework) {
  const auto read = parse_requirement(framework);
  const auto* requirement = std::get_if<Requirement>(&read);
  return requirement == nullptr ? "" : requirement->normalised_name();
}

/// A version that leaves no room for a build of another CUDA release.
bool is_bounded(const std::string& framework) {
  return framework.find("==") != std::string::npos || framework.find('<') != std::string::npos ||
         framework.find("~=") != std::string::npos;
}

void choose_pytorch_cuda(Draft& draft, const std::string& driver, std::string_view newest) {
  if (driver.empty()) {
    draft.cuda_note =
        "This machine has no NVIDIA driver. PyTorch's default wheels bring CUDA and run without a "
        "GPU too. For smaller ones write `cuda: cpu`, and name an index that has them in "
        "`sources`.";
  } else if (is_bounded(draft.framework)) {
    draft.cuda_note = fmt::format(
        "Without `cuda` it is what this PyTorch's wheels were built for. This machine's driver is "
        "{}.",
        driver);
  } else if (!newest.empty()) {
    draft.cuda = newest;
  }
}

/// Beside another framework: its default wheels bring CUDA.
bool wants_torch(const Draft& draft) {
  return std::any_of(draft.packages.begin(), draft.packages.end(),
                     [](const std::string& one) { return name_of_requirement(one) == "torch"; });
}

void choose_cuda(Draft& draft, const std::string& driver) {
  const std::string package = package_of(draft.framework);
  const bool torch = package == "pytorch" || package == "torch";
  if (!draft.cuda.empty() || (!torch && package != "tensorflow" && package != "jax")) return;
  std::span<const std::string_view> majors = kBoth;
  if (package == "tensorflow" || (package == "jax" && is_bounded(draft.framework)))
    majors = kTwelve;
  std::string_view newest;
  for (const std::string_view major : majors) {
    if (!newest.empty() || driver.empty()) break;
    if (std::is_gteq(compare_versions(driver, cuda_driver_floor(major)))) newest = major;
  }
  if (torch) {
    choose_pytorch_cuda(draft, driver, newest);
  } else if (newest.empty() && wants_torch(draft)) {
    draft.cuda_note = "`cpu` would ask for builds of PyTorch without CUDA, too.";
    return;
  } else {
    draft.cuda = newest.empty() ? "cpu" : newest;
    draft.cuda_note = driver.empty() ? "This machine has no NVIDIA driver; `\"12\"` and `\"13\"` "
                                       "are CUDA releases, for machines that have one."
                                     : "";
  }
  if (driver.empty() || !draft.cuda_note.empty()) return;
  draft.cuda_note = newest.empty()
                        ? fmt::format(
                              "This machine's driver, {}, is too old for CUDA {} (from {} "
                              "on).",
                              driver, majors.back(), cuda_driver_floor(majors.back()))
                        : fmt::format("This machine's driver, {}, runs CUDA {} (from {} on).",
                                      driver, newest, cuda_driver_floor(newest));
}

}  // namespace

std::string base_of_suite(std::string_view distribution, std::string_view suite) {
  const Distribution* known = find_distribution(distribution);
  const bool has = known != nullptr && std::find(known->suites.begin(), known->suites.end(),
                                                 suite) != known->suites.end();
  return has ? fmt::format("{}:{}", distribution, suite) : "";
}

std::string base_of_number(std::string_view distribution, std::string_view number) {
  const Distribution* known = find_distribution(distribution);
  return known == nullptr ? "" : base_of_suite(distribution, known->suite_of_number(number));
}

bool is_package_base(std::string_view base) { return distribution_of(base) != nullptr; }

std::string_view python_of_base(std::string_view base) {
  const Distribution* known = distribution_of(base);
  return known == nullptr ? "" : known->python_of(base.substr(base.find(':') + 1));
}

void choose_for_host(Draft& draft, const HostFacts& host) {
  if (draft.base.empty() && !draft.python.empty()) {
    const bool fits = python_of_base(host.base) == draft.python;
    const std::string other = base_with_python(draft.python);
    const bool mirrored = host.has_python_mirror && !other.starts_with("debian:");
    if (fits || !mirrored) draft.base = fits ? host.base : other;
    if (!fits && draft.base.starts_with("ubuntu:")) {
      draft.base_note +=
          fmt::format("{}No release of Debian has Python {}; this one of Ubuntu does.",
                      draft.base_note.empty() ? "" : " ", draft.python);
    }
  }
  if (draft.base.empty()) {
    const bool has_python = !python_of_base(host.base).empty();
    draft.base = has_python ? host.base : "debian:bookworm";
    if (has_python && draft.base_note.empty()) draft.base_note = "As on this machine.";
  }
  const bool wants_python = draft.wants_python || !draft.framework.empty() ||
                            !draft.packages.empty() || !draft.requirements.empty();
  if (draft.python.empty() && wants_python) draft.python = python_of_base(draft.base);
  choose_cuda(draft, host.nvidia_driver);
}

}  // namespace mlenv
