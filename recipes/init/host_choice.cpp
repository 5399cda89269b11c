#include "recipes/init/host_choice.hpp"

#include <algorithm>
#include <compare>
#include <span>

#include <fmt/core.h>

#include "recipes/compat/cuda_releases.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

struct Suite {
  std::string_view name;
  std::string_view number;
  std::string_view python;
};
constexpr std::array<Suite, 5> kSuites = {{{"bookworm", "12", "3.11"},
                                           {"trixie", "13", "3.13"},
                                           {"bullseye", "11", "3.9"},
                                           {"forky", "14", ""},
                                           {"sid", "", ""}}};

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

std::string_view python_of_suite(std::string_view suite) {
  for (const Suite& one : kSuites) {
    if (one.name == suite) return one.python;
  }
  return {};
}

std::string_view suite_with_python(std::string_view python) {
  for (const Suite& one : kSuites) {
    if (!one.python.empty() && one.python == python) return one.name;
  }
  return {};
}

std::string_view suite_of_number(std::string_view number) {
  const std::string_view release = number.substr(0, number.find('.'));
  for (const Suite& one : kSuites) {
    if (!release.empty() && one.number == release) return one.name;
  }
  return {};
}

bool is_known_suite(std::string_view suite) {
  return std::any_of(kSuites.begin(), kSuites.end(),
                     [&](const Suite& one) { return one.name == suite; });
}

void choose_for_host(Draft& draft, const HostFacts& host) {
  if (draft.suite.empty() && !draft.python.empty()) {
    const bool fits = python_of_suite(host.debian_suite) == draft.python;
    draft.suite = fits ? std::string_view(host.debian_suite) : suite_with_python(draft.python);
  }
  if (draft.suite.empty()) {
    const bool has_python = !python_of_suite(host.debian_suite).empty();
    draft.suite = has_python ? host.debian_suite : "bookworm";
    if (has_python && draft.base_note.empty()) draft.base_note = "As on this machine.";
  }
  if (draft.python.empty() && (!draft.framework.empty() || !draft.packages.empty())) {
    draft.python = python_of_suite(draft.suite);
  }
  choose_cuda(draft, host.nvidia_driver);
}

}  // namespace mlenv
