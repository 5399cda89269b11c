// Whether there are GPUs, and of what sort.
#include <algorithm>

#include <fmt/core.h>

#include "recipes/text.hpp"
#include "runner/check/driver_standing.hpp"
#include "runner/check/rules.hpp"

namespace mlenv {
namespace {

bool are_asked_for(const ImageFacts& image) {
  return is_demand(image.oldest_driver) || is_demand(image.gpus);
}

}  // namespace

void no_gpu(Case& here) {
  constexpr const char* kRule = "no-gpu";
  const auto wanted = here.use().gpus;
  if (wanted == 0U) return;
  const auto& gpus = here.host().gpus;
  const std::size_t there = gpus ? gpus->size() : 0;
  const bool too_few = wanted && gpus && here.has_gpu().value == true && there < *wanted;
  if (here.has_gpu().value == true && wanted && !here.knows(kRule, "host gpus", gpus)) return;
  if (here.has_gpu().value == true && !too_few) return;
  const bool asked = wanted.has_value() || are_asked_for(here.image());
  if (!asked && here.uses_cuda().value == false) return;
  if (!asked && !here.knows(kRule, "image frameworks", here.uses_cuda())) return;
  if (!here.knows(kRule, "host gpus", here.has_gpu())) return;
  const auto need = cuda_need(here.image());
  here.find(kRule, asked ? Severity::blocks : Severity::slows,
            {wanted ? counted(*wanted, "GPU")
             : need ? "a GPU for " + need->shown()
                    : "a GPU",
             too_few ? counted(there, "GPU") : "no NVIDIA GPU",
             fmt::format("{}; {}", asked && !wanted ? "the recipe" : "image frameworks",
                         here.has_gpu().source),
             too_few ? fmt::format("run it on a host with {}, or ask for fewer (`--gpus {}`)",
                                   counted(*wanted, "GPU"), there)
             : asked ? "run it on a host with GPUs"
                     : "run it on a host with a GPU, or take a CPU build (`cuda: cpu`), which is "
                       "gigabytes smaller",
             too_few ? "there are too few GPUs" : ""});
}

void cpu_only_framework(Case& here) {
  const auto& builds = here.image().frameworks;
  if (!builds || here.has_gpu().value != true || here.use().gpus == 0U) return;
  std::vector<std::string> names;
  for (const FrameworkBuild& one : *builds) {
    if (one.cuda == "cpu") names.push_back(fmt::format("{} {}", one.name, one.version));
  }
  if (names.empty()) return;
  const auto& gpus = here.host().gpus;
  here.find("cpu-only-framework",
            {"a CUDA build of " + join(names, ", "),
             "a build for CPUs; " +
                 (gpus && !gpus->empty() ? shown(gpus->front()) : std::string("an NVIDIA GPU")),
             fmt::format("{}; {}", builds.source, here.has_gpu().source),
             "take a CUDA build: leave `cuda: cpu` out of the recipe, or name a release"});
}

void mig(Case& here) {
  const auto& gpus = here.host().gpus;
  if (here.uses_cuda().value != true || here.use().gpus == 0U || !gpus) return;
  const auto split =
      std::find_if(gpus->begin(), gpus->end(), [](const Gpu& gpu) { return gpu.mig && *gpu.mig; });
  if (split == gpus->end()) return;
  here.find("mig", {"whole GPUs, to train on several", shown(*split) + " is split into instances",
                    split->mig.source,
                    "use one instance a process: instances cannot reach each other, so that NCCL "
                    "has no all-reduce over them; `nvidia-smi -mig 0` joins them"});
}

void wsl(Case& here) {
  const Truth& is_wsl = here.host().system.wsl;
  if (!is_wsl || !*is_wsl) return;
  here.find("wsl", {"Linux on the machine itself, for all of CUDA",
                    "WSL: the driver is Windows' own", is_wsl.source,
                    "update the driver in Windows, never in WSL; there is no GPUDirect, and memory "
                    "locked by programs is limited"});
}

}  // namespace mlenv
