// Whether the image holds code for the host's GPUs.
#include <algorithm>

#include <fmt/core.h>

#include "recipes/compat/cuda_releases.hpp"
#include "recipes/compat/runtime_compilers.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "runner/check/driver_standing.hpp"
#include "runner/check/rules.hpp"

namespace mlenv {
namespace {

using Codes = std::vector<std::string>;

/// GPUs without code, and what there is instead.
struct Missing {
  std::vector<const Gpu*> gpus;
  std::string needed;
  std::string found;
  std::string source;
};

/// By what the release's compiler could make at most, where the code itself does not decide.
void missing_by_release(Case& here, const Gpu& gpu, Missing& missing) {
  const auto need = cuda_need(here.image());
  const auto architecture = architecture_of(gpu);
  if (!need || !need->is_exact() || !architecture) return;
  if (most_coverage(need->release, *architecture) != Coverage::none) return;
  missing.gpus.push_back(&gpu);
  missing.needed = fmt::format("code for {}", architecture->name());
  missing.found = fmt::format("{}, which makes none for {}", need->shown(), architecture->name());
  missing.source = need->source + "; host gpus";
}

/// The oldest and the newest release of which the compiler makes machine code that a GPU runs;
/// empty: none that is known here.
struct Releases {
  std::string_view oldest;
  std::string_view newest;
};
Releases releases_for(const DeviceCode& gpu) {
  Releases found;
  for (const CudaRelease& one : cuda_releases()) {  // newest first
    if (most_coverage(one.release, gpu) != Coverage::complete) continue;
    if (found.newest.empty()) found.newest = one.release;
    found.oldest = one.release;
  }
  return found;
}

/// What build holds code for the GPU.
std::string build_remedy(const Case& here, const Gpu& gpu) {
  const auto architecture = architecture_of(gpu);
  if (!architecture) return "take a build for this GPU";
  const std::string name = architecture->name();
  const auto need = cuda_need(here.image());
  const Releases releases = releases_for(*architecture);
  std::string build = fmt::format("take a build with code for {}", name);
  if (need && need->is_exact() && !releases.newest.empty()) {
    if (is_older(need->release, releases.oldest)) {
      build = fmt::format("take a build for CUDA {} or newer, the first whose code runs on {}",
                          releases.oldest, name);
    } else if (is_older(releases.newest, need->release)) {
      build = fmt::format("take a build for CUDA {} or older, the last whose code runs on {}",
                          releases.newest, name);
    }
  }
  return fmt::format("{}; `gpus: [{}]` in a recipe makes sure of it", build, name);
}

void judge_gpu_code(Case& here, const Gpu& gpu, Missing& missing) {
  const auto standing = code_standing(here.image(), gpu);
  const bool decides = standing && !standing->library.empty();
  if (!decides) {
    const std::size_t before = missing.gpus.size();
    missing_by_release(here, gpu, missing);
    if (!standing && missing.gpus.size() == before) {
      here.cannot_judge("no-device-code",
                        here.image().device_code ? "host gpus" : "image device_code",
                        standing.source);
    }
    return;
  }
  if (standing->coverage != Coverage::none) return;
  const auto architecture = architecture_of(gpu);
  missing.gpus.push_back(&gpu);
  missing.needed = fmt::format("code for {} in `{}`",
                               architecture ? architecture->name() : "the GPU", standing->library);
  missing.found =
      standing->code.empty() ? "no device code" : "code for " + join(standing->code, " ");
  missing.source = "image device_code; host gpus";
}

bool asks_for_gpus(const Case& here) {
  return here.uses_cuda().value == true && here.has_gpu().value == true && here.use().gpus != 0U;
}

/// Those that the image has no machine code for; before the build all: wheels are as their makers
/// build them.
std::vector<const Gpu*> gpus_without_code(const Case& here) {
  if (here.image().device_code || !here.host().gpus) return gpus_by_ptx(here.image(), here.host());
  std::vector<const Gpu*> all;
  for (const Gpu& gpu : *here.host().gpus) all.push_back(&gpu);
  return all;
}

/// A framework that compiles while it runs, and a GPU that it cannot compile for.
struct FoundGap {
  const FrameworkBuild* framework;
  const Gpu* gpu;
  std::string gpu_name;
  CompilerGap known;
};
std::optional<FoundGap> gap_of(const Case& here) {
  const auto& frameworks = here.image().frameworks;
  if (!frameworks || !asks_for_gpus(here)) return std::nullopt;
  for (const Gpu* gpu : gpus_without_code(here)) {
    const auto architecture = architecture_of(*gpu);
    for (const FrameworkBuild& one : *frameworks) {
      if (!architecture || one.cuda == "cpu") continue;
      const auto gap = compiler_gap(one.name, one.version, *architecture);
      if (gap) return FoundGap{&one, gpu, architecture->name(), *gap};
    }
  }
  return std::nullopt;
}

}  // namespace

void no_device_code(Case& here) {
  constexpr const char* kRule = "no-device-code";
  if (!here.on_gpus(kRule) || !here.knows(kRule, "host gpus", here.host().gpus)) return;
  Missing missing;
  for (const Gpu& gpu : *here.host().gpus) judge_gpu_code(here, gpu, missing);
  if (missing.gpus.empty()) return;
  // Of several GPUs a program may be given others.
  const std::size_t left = here.host().gpus->size() - missing.gpus.size();
  const bool blocks = left < std::max(here.use().gpus.value_or(1), 1U);
  here.find(kRule, blocks ? Severity::blocks : Severity::risks,
            {std::move(missing.needed),
             fmt::format("{}, on {}", missing.found, shown(*missing.gpus.front())),
             std::move(missing.source),
             blocks ? build_remedy(here, *missing.gpus.front())
                    : "hide this GPU: CUDA_VISIBLE_DEVICES with the others"});
}

void xla_too_old(Case& here) {
  const auto gap = gap_of(here);
  if (!gap) return;
  here.find(
      "xla-too-old",
      {fmt::format("a {} whose compiler knows {}", gap->framework->name, gap->gpu_name),
       fmt::format("{} {}, on {}", gap->framework->name, gap->framework->version, shown(*gap->gpu)),
       fmt::format("image frameworks; host gpus; {}", gap->known.source),
       gap->known.first.empty()
           ? fmt::format("take a build of it that holds code for {} (NVIDIA's images do), or "
                         "another GPU; no wheel that mlenv knows will do",
                         gap->gpu_name)
           : fmt::format("take {} {} or newer (`framework: {}>={}` in a recipe)",
                         gap->framework->name, gap->known.first, gap->framework->name,
                         gap->known.first)});
}

void ptx_only(Case& here) {
  constexpr const char* kRule = "ptx-only";
  if (!asks_for_gpus(here)) return;
  const auto gpus = gpus_by_ptx(here.image(), here.host());
  if (gpus.empty() || ptx_is_too_new(here) || gap_of(here)) return;
  const auto standing = code_standing(here.image(), *gpus.front());
  const auto architecture = architecture_of(*gpus.front());
  here.find(kRule,
            {fmt::format("machine code for {} in `{}`", architecture ? architecture->name() : "",
                         standing ? standing->library : ""),
             fmt::format("{}, of which {} compiles PTX", standing ? join(standing->code, " ") : "",
                         shown(*gpus.front())),
             "image device_code; host gpus",
             "take a build that holds code for this GPU; else keep ~/.nv/ComputeCache between "
             "runs, so that it is compiled once"});
}

void recipe_gpus(Case& here) {
  constexpr const char* kRule = "recipe-gpus";
  const auto& promised = here.image().gpus;
  if (!is_demand(promised) || here.use().gpus == 0U) return;
  if (here.has_gpu().value == false) return;  // rule no-gpu
  if (!here.knows(kRule, "host gpus", here.host().gpus)) return;
  for (const Gpu& gpu : *here.host().gpus) {
    const auto architecture = architecture_of(gpu);
    if (!architecture) {
      here.cannot_judge(kRule, "host gpus", gpu.compute_capability.source);
      return;
    }
    const bool serves = std::any_of(promised->begin(), promised->end(), [&](const auto& name) {
      const auto code = parse_device_code(name);
      return code && runs_on(*code, *architecture);
    });
    if (serves) return;
  }
  if (here.host().gpus->empty()) return;
  const auto first = architecture_of(here.host().gpus->front());
  here.find(kRule,
            {"a GPU that runs code for " + join(*promised, " "), shown(here.host().gpus->front()),
             fmt::format("{}; {}", promised.source, here.host().gpus.source),
             fmt::format("add `{}` to the recipe's `gpus`, and lock it again",
                         first ? first->name() : "this GPU")});
}

}  // namespace mlenv
