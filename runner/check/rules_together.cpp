// What only shows between ranks on several hosts.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "runner/check/case.hpp"
#include "runner/check/driver_standing.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostNodesNamed = 6;

std::string newest(const std::vector<FoundLibrary>& libraries) {
  std::string version;
  for (const FoundLibrary& one : libraries) {
    if (version.empty() || is_older(version, one.version)) version = one.version;
  }
  return version;
}

void nccl_differs(std::span<const Rank> ranks, Verdict& verdict) {
  constexpr const char* kRule = "nccl-differs";
  std::vector<const ImageFacts*> images;
  for (const Rank& rank : ranks) {
    if (std::find(images.begin(), images.end(), rank.image) == images.end()) {
      images.push_back(rank.image);
    }
  }
  std::map<std::string, std::string> by_version;
  std::string source;
  for (const ImageFacts* image : images) {
    if (!image->nccl) {
      if (images.size() > 1) {
        verdict.unjudged.push_back(
            {kRule, "image nccl", image->nccl.source, how_to_know(*image, "image nccl")});
      }
      continue;
    }
    const std::string version = newest(*image->nccl);
    if (version.empty()) continue;
    by_version.emplace(version, image->name);
    source = image->nccl.source;
  }
  if (by_version.size() < 2) return;
  std::vector<std::string> found;
  for (const auto& [version, name] : by_version) {
    found.push_back(fmt::format("{} in {}", version, name));
  }
  verdict.findings.push_back(
      {kRule, Severity::risks, "one version of NCCL in all ranks", join(found, ", "), source,
       "run the same image everywhere, or pin it: `libraries: {nccl: …}` in the recipes"});
}

/// On hosts with GPUs of which it is known.
void drivers_differ(std::span<const Rank> ranks, Verdict& verdict) {
  std::map<std::string, std::vector<std::string>> hosts;
  std::string source;
  std::string newest_driver;
  for (const Rank& rank : ranks) {
    const Text driver = driver_of(*rank.host);
    const bool has_gpus = rank.host->gpus && !rank.host->gpus->empty();
    const bool uses_gpus = rank.image->cuda_runtimes && !rank.image->cuda_runtimes->empty();
    if (!driver || !has_gpus || !uses_gpus) continue;
    std::vector<std::string>& names = hosts[*driver];
    const std::string name(rank.host_name);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (newest_driver.empty() || is_older(newest_driver, *driver)) newest_driver = *driver;
    source = driver.source;
  }
  if (hosts.size() < 2) return;
  std::vector<std::string> found;
  for (const auto& [driver, names] : hosts) {
    found.push_back(fmt::format("{} on {}", driver, listed(names, kMostNodesNamed)));
  }
  verdict.findings.push_back(
      {"drivers-differ", Severity::note, "one NVIDIA driver on all hosts", join(found, "; "),
       source,
       fmt::format("update the others to {}: what runs on one host then runs on all",
                   newest_driver)});
}

}  // namespace

Verdict judge_together(std::span<const Rank> ranks, const Use& use) {
  Verdict verdict;
  if (use.nodes < 2 || use.gpus == 0U) return verdict;
  nccl_differs(ranks, verdict);
  drivers_differ(ranks, verdict);
  sort_verdict(verdict);
  return verdict;
}

}  // namespace mlenv
