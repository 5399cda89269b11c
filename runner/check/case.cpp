#include "runner/check/case.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "base/text.hpp"

namespace mlenv {
namespace {

bool is_cuda_build(const FrameworkBuild& build) {
  return !build.cuda.empty() && build.cuda != "cpu";
}

bool is_cpu_build(const FrameworkBuild& build) { return build.cuda == "cpu"; }

Truth uses_cuda(const ImageFacts& image) {
  const auto& builds = image.frameworks;
  if (builds && std::any_of(builds->begin(), builds->end(), is_cuda_build)) {
    return known(true, "frameworks");
  }
  if (image.cuda_runtimes && !image.cuda_runtimes->empty()) return known(true, "cuda_runtimes");
  const auto& code = image.device_code;
  if (code &&
      std::any_of(code->begin(), code->end(), [](const auto& one) { return one.decides; })) {
    return known(true, "device_code");
  }
  if (builds && image.cuda_runtimes) return known(false, "frameworks and cuda_runtimes");
  // Before a build this is all that tells.
  if (builds && !builds->empty() && std::all_of(builds->begin(), builds->end(), is_cpu_build)) {
    return known(false, "frameworks");
  }
  return unknown<bool>(builds ? image.cuda_runtimes.source : builds.source);
}

Truth has_gpu(const Facts& host) {
  const Texts& pci = host.nvidia.pci_devices;
  if (host.gpus && !host.gpus->empty()) return known(true, host.gpus.source);
  if (pci && !pci->empty()) return known(true, pci.source);
  if (host.gpus) return known(false, host.gpus.source);
  // WSL's GPUs are on no bus that Linux sees.
  const bool on_wsl = !host.system.wsl || *host.system.wsl;
  if (pci && !on_wsl) return known(false, pci.source);
  return unknown<bool>(host.gpus.source);
}

std::size_t rule_place(std::string_view rule) {
  const std::span<const Rule> all = rules();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Rule& one) { return one.id == rule; });
  return static_cast<std::size_t>(found - all.begin());
}

}  // namespace

Case::Case(const ImageFacts& of_image, const Facts& of_host, const Use& how)
    : image_(&of_image),
      host_(&of_host),
      use_(&how),
      uses_cuda_(mlenv::uses_cuda(of_image)),
      has_gpu_(mlenv::has_gpu(of_host)) {}

void Case::find(std::string_view rule, Said said) {
  const Rule* known_rule = find_rule(rule);
  find(rule, known_rule == nullptr ? Severity::note : known_rule->severity, std::move(said));
}

void Case::find(std::string_view rule, Severity severity, Said said) {
  verdict_.findings.push_back({std::string(rule), severity, std::move(said.needed),
                               std::move(said.found), std::move(said.source),
                               std::move(said.remedy), std::move(said.title)});
}

void Case::cannot_judge(std::string_view rule, std::string fact, std::string why, std::string how) {
  if (how.empty()) how = how_to_know(*image_, fact);
  verdict_.unjudged.push_back({std::string(rule), std::move(fact), std::move(why), std::move(how)});
}

bool Case::on_gpus(std::string_view rule) {
  const bool matters = use_->gpus != 0U && uses_cuda_.value != false && has_gpu_.value != false;
  if (!matters) return false;
  if (uses_cuda_ && has_gpu_) return true;
  const Rule* row = find_rule(rule);
  // The rules that decide say it for the others.
  if (row == nullptr || !row->decides) return false;
  if (!uses_cuda_) {
    cannot_judge(rule, "image frameworks", uses_cuda_.source);
  } else {
    cannot_judge(rule, "host gpus", has_gpu_.source);
  }
  return false;
}

bool Case::in_container() const {
  const Text& container = host_->system.container;
  return container && *container != "none";
}

Verdict Case::verdict() && {
  sort_verdict(verdict_);
  return std::move(verdict_);
}

void sort_verdict(Verdict& verdict) {
  std::stable_sort(verdict.findings.begin(), verdict.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     return std::pair(a.severity, rule_place(a.rule)) <
                            std::pair(b.severity, rule_place(b.rule));
                   });
  std::stable_sort(
      verdict.unjudged.begin(), verdict.unjudged.end(),
      [](const Unjudged& a, const Unjudged& b) { return rule_place(a.rule) < rule_place(b.rule); });
  verdict.unjudged.erase(std::unique(verdict.unjudged.begin(), verdict.unjudged.end()),
                         verdict.unjudged.end());
}

std::string how_to_know(const ImageFacts& image, std::string_view fact) {
  if (fact.starts_with("image ")) {
    if (image.kind == "recipe") return "`mlenv lock` the recipe, and check it again";
    if (image.kind == "lock") return "`mlenv build` it, and check the image";
    return "check the image itself, or facts of it that this mlenv writes: `mlenv inspect IMAGE "
           "--facts --json`";
  }
  const bool of_gpus = fact.starts_with("host nvidia") || fact.starts_with("host gpus");
  return of_gpus
             ? "`mlenv facts --json` on the host itself, with its driver loaded; in a container "
               "only where that is given the GPUs"
             : "`mlenv facts --json` on the host itself, not in a container, by this mlenv";
}

std::string shown(const Gpu& gpu) {
  std::string text = fmt::format("GPU {}", gpu.index);
  if (gpu.name) text += ", " + *gpu.name;
  if (gpu.compute_capability)
    text += fmt::format(" (compute capability {})", *gpu.compute_capability);
  return text;
}

std::optional<DeviceCode> architecture_of(const Gpu& gpu) {
  if (!gpu.compute_capability) return std::nullopt;
  std::string digits = *gpu.compute_capability;
  const std::size_t dot = digits.find('.');
  if (dot == std::string::npos) return std::nullopt;
  digits.erase(dot, 1);
  return parse_device_code("sm_" + digits);
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kKilo = 1000;
  constexpr std::uint64_t kMega = kKilo * kKilo;
  constexpr std::uint64_t kGiga = kMega * kKilo;
  const auto in = [&](std::uint64_t unit) {
    return static_cast<double>(bytes) / static_cast<double>(unit);
  };
  if (bytes >= kGiga) return fmt::format("{:.1f} GB", in(kGiga));
  if (bytes >= kMega) return fmt::format("{:.0f} MB", in(kMega));
  return bytes >= kKilo ? fmt::format("{:.0f} kB", in(kKilo)) : fmt::format("{} B", bytes);
}

const std::string* variable_of(const ImageFacts& image, std::string_view name) {
  for (const Variable& one : image.environment) {
    if (one.name == name) return &one.value;
  }
  return nullptr;
}

}  // namespace mlenv
