#include <fmt/core.h>

#include "base/text.hpp"
#include "recipes/compat/cuda_releases.hpp"
#include "recipes/resolve/versions.hpp"
#include "runner/check/driver_standing.hpp"
#include "runner/check/requirement.hpp"
#include "runner/check/rules.hpp"

namespace mlenv {
namespace {

constexpr const char* kRequirementRule = "requirement-unmet";
constexpr std::string_view kRequirePrefix = "NVIDIA_REQUIRE_";

/// As Go's strconv.ParseBool has it.
bool is_go_true(std::string_view text) {
  return text == "1" || text == "t" || text == "T" || text == "true" || text == "TRUE" ||
         text == "True";
}

std::vector<Variable> requirements_of(const ImageFacts& image) {
  std::vector<Variable> all;
  const std::string* disabled = variable_of(image, "NVIDIA_DISABLE_REQUIRE");
  if (disabled != nullptr && is_go_true(*disabled)) return all;
  for (const Variable& one : image.environment) {
    const bool is_one = one.name.starts_with(kRequirePrefix) &&
                        !one.name.starts_with("NVIDIA_REQUIRE_JETPACK") && !trim(one.value).empty();
    if (is_one) all.push_back(one);
  }
  // Images older than the variable.
  const std::string* cuda = variable_of(image, "NVIDIA_REQUIRE_CUDA");
  const std::string* version = variable_of(image, "CUDA_VERSION");
  if (version != nullptr && !version->empty() && (cuda == nullptr || cuda->empty())) {
    all.push_back({"CUDA_VERSION", "cuda>=" + version_prefix(*version, 2)});
  }
  return all;
}

/// The driver that an alternative asks for by `cuda>=12.8` or `driver>=570`, newer than the host's;
/// empty: what is unmet is something else.
std::string driver_that_meets(std::string_view requirement, const Text& own) {
  constexpr std::string_view kCuda = "cuda>=";
  constexpr std::string_view kDriver = "driver>=";
  for (const std::string_view alternative : split(requirement, ' ')) {
    // Some ask for one branch: `driver>=535,driver<536`.
    if (alternative.find("driver<") != std::string_view::npos) continue;
    for (const std::string_view term : split(alternative, ',')) {
      std::string driver;
      if (term.starts_with(kDriver)) driver = term.substr(kDriver.size());
      if (term.starts_with(kCuda)) {
        driver = cuda_driver(version_prefix(term.substr(kCuda.size()), 2));
      }
      if (!driver.empty() && (!own || is_older(*own, driver))) return driver;
    }
  }
  return {};
}

std::string requirement_remedy(const Variable& asked, const Facts& host) {
  const std::string driver = driver_that_meets(asked.value, driver_of(host));
  const Text cuda = driver_cuda(host);
  return fmt::format(
      "{}take an image {}; NVIDIA_DISABLE_REQUIRE=1 leaves the check out",
      driver.empty() ? "" : fmt::format("update the NVIDIA driver to {} or newer, or ", driver),
      cuda ? fmt::format("for CUDA {} or older", *cuda) : "for an older CUDA");
}

void judge_one(Case& here, const Variable& asked, const Gpu* gpu) {
  const Facts& host = here.host();
  RequirementFacts facts;
  facts.cuda = driver_cuda(host).value.value_or("");
  facts.driver = driver_of(host).value.value_or("");
  if (gpu != nullptr) {
    facts.arch = gpu->compute_capability.value.value_or("");
    facts.brand = brands_of(gpu->name.value.value_or(""));
  }
  const Met met = requirement_met(asked.value, facts);
  if (met == Met::yes) return;
  if (met != Met::no) {
    if (met == Met::unknown) {
      here.cannot_judge(kRequirementRule, "host nvidia",
                        fmt::format("what `{}` asks is not all known of this host", asked.name));
    } else {
      here.cannot_judge(kRequirementRule, "image environment",
                        fmt::format("`{}={}` is not understood", asked.name, asked.value),
                        fmt::format("correct `{}`, or leave it out", asked.name));
    }
    return;
  }
  here.find(
      kRequirementRule,
      {fmt::format("{}={}", asked.name, asked.value),
       fmt::format("{}{}", shown_driver(host), gpu == nullptr ? "" : ", " + shown(*gpu)),
       fmt::format("image environment; {}", driver_source(host)), requirement_remedy(asked, host)});
}

}  // namespace

void requirement_unmet(Case& here) {
  const Facts& host = here.host();
  const std::vector<Variable> asked = requirements_of(here.image());
  const bool unloaded = host.nvidia.kernel_driver && *host.nvidia.kernel_driver == "none";
  if (asked.empty() || here.use().gpus == 0U || here.has_gpu().value == false || unloaded) return;
  if (!here.knows(kRequirementRule, "host gpus", here.has_gpu())) return;
  for (const Variable& one : asked) {
    if (!host.gpus || host.gpus->empty()) {
      judge_one(here, one, nullptr);
      continue;
    }
    // The first that it does not hold for tells enough.
    for (const Gpu& gpu : *host.gpus) {
      const std::size_t before = here.count();
      judge_one(here, one, &gpu);
      if (here.count() != before) break;
    }
  }
}

}  // namespace mlenv
