// Whether the driver is new enough, and by which of NVIDIA's ways.
#include <fmt/core.h>

#include "recipes/compat/cuda_releases.hpp"
#include "recipes/text.hpp"
#include "runner/check/driver_standing.hpp"
#include "runner/check/rules.hpp"

namespace mlenv {
namespace {

/// What the driver rules look at, once all of it is known.
struct Looked {
  CudaNeed need;
  Standing standing = Standing::as_new;
  CompatStanding compat;
};

/// Nothing where the rules say nothing; what is unknown is recorded for `rule`, unless it is empty.
std::optional<Looked> look_at_driver(Case& here, std::string_view rule) {
  const Facts& host = here.host();
  const Text& kernel = host.nvidia.kernel_driver;
  if (kernel && *kernel == "none") return std::nullopt;  // rule driver-not-loaded
  if (rule.empty()) {
    if (here.uses_cuda().value != true || here.has_gpu().value != true || here.use().gpus == 0U) {
      return std::nullopt;
    }
  } else if (!here.on_gpus(rule)) {
    return std::nullopt;
  }
  const auto need = cuda_need(here.image());
  const auto standing = need ? driver_standing(host, *need) : unknown<Standing>(need.source);
  if (!standing) {
    const bool is_told = need && driver_of(host) && host.system.wsl.value != true;
    if (!rule.empty()) {
      here.cannot_judge(
          rule, need ? "host nvidia.kernel_driver" : "image cuda_runtimes", standing.source,
          is_told ? "`mlenv data update` takes newer CUDA releases into its table" : "");
    }
    return std::nullopt;
  }
  return Looked{*need, *standing, compat_standing(here.image(), host, *need)};
}

std::string both_sources(const Case& here, const CudaNeed& need) {
  return fmt::format("{}; {}", need.source, driver_source(here.host()));
}

std::string gpus_listed(const std::vector<const Gpu*>& gpus) {
  std::vector<std::string> names;
  names.reserve(gpus.size());
  for (const Gpu* gpu : gpus) names.push_back(shown(*gpu));
  constexpr std::size_t kMost = 2;
  return listed(names, kMost);
}

std::string update_to(const std::string& driver) {
  return driver.empty() ? "update the NVIDIA driver"
                        : fmt::format("update the NVIDIA driver to {} or newer", driver);
}

/// The newest major version of CUDA of which the host's driver runs every release's machine code;
/// empty: none that is known.
std::string major_that_runs(const Facts& host) {
  const Text driver = driver_of(host);
  if (driver && host.system.wsl.value != true) {
    for (const CudaRelease& one : cuda_releases()) {  // newest first
      if (!has_minor_compatibility(one.release)) break;
      const std::string_view floor = cuda_driver_floor(one.release);
      if (!floor.empty() && !is_older(*driver, floor)) return major_of(one.release);
    }
  }
  return major_of(driver_cuda(host).value.value_or(""));
}

/// Nothing where it does not run by a libcuda of the image's.
std::optional<Looked> look_forward(Case& here) {
  auto looked = look_at_driver(here, {});
  if (!looked || !looked->compat.what || *looked->compat.what != Compat::works) return {};
  const bool for_ptx = looked->standing == Standing::minor_version &&
                       !gpus_by_ptx(here.image(), here.host()).empty() && !ptx_is_too_new(here);
  if (looked->standing != Standing::too_old && !for_ptx) return {};
  return looked;
}

}  // namespace

std::string forward_libraries(const ImageFacts& image, const Facts& host, const Use& use) {
  Case here(image, host, use);
  const auto looked = look_forward(here);
  if (!looked || looked->compat.forced) return {};
  const std::string& file = looked->compat.library.path;
  return file.substr(0, file.rfind('/'));
}

void driver_too_old(Case& here) {
  constexpr const char* kRule = "driver-too-old";
  const auto looked = look_at_driver(here, kRule);
  if (!looked || looked->standing != Standing::too_old) return;
  const auto& [need, standing, compat] = *looked;
  if (!compat.what) {
    const bool is_of_image = !here.image().forward_compatibility;
    here.cannot_judge(kRule, is_of_image ? "image forward_compatibility" : "host gpus",
                      compat.what.source,
                      is_of_image || !here.host().gpus
                          ? ""
                          : "NVIDIA's CUDA Compatibility guide lists the GPUs that may use it");
    return;
  }
  if (*compat.what != Compat::none) return;  // the rules on forward compatibility
  const std::string floor = oldest_driver_for(need);
  const std::string major = major_that_runs(here.host());
  here.find(kRule, {floor.empty() ? fmt::format("a driver for {}", need.shown())
                                  : fmt::format("driver {} or newer for {}", floor, need.shown()),
                    shown_driver(here.host()), both_sources(here, need),
                    major.empty()
                        ? update_to(floor)
                        : fmt::format("{}, or take a build for CUDA {}", update_to(floor), major)});
}

void minor_version_compatibility(Case& here) {
  const auto looked = look_at_driver(here, {});
  if (!looked) return;
  const CudaNeed& need = looked->need;
  if (looked->standing == Standing::at_least_minor) {
    here.cannot_judge("minor-version-compatibility", "image cuda_runtimes",
                      fmt::format("which release of CUDA {} it is", need.release));
    return;
  }
  if (looked->standing != Standing::minor_version) return;
  const std::string own = own_driver_of(need);
  here.find("minor-version-compatibility",
            {own.empty() ? fmt::format("the own driver of {}", need.shown())
                         : fmt::format("driver {} for all of {}", own, need.shown()),
             shown_driver(here.host()) + ", which runs precompiled code of it, and no PTX",
             both_sources(here, need),
             "nothing, while it works; new functions of CUDA fail with error 36 until the driver "
             "is updated"});
}

void ptx_too_new(Case& here) {
  constexpr const char* kRule = "ptx-too-new";
  const auto looked = look_at_driver(here, {});
  if (!looked || looked->standing != Standing::minor_version) return;
  if (!here.image().device_code) {
    here.cannot_judge(kRule, "image device_code", here.image().device_code.source);
    return;
  }
  const auto gpus = gpus_by_ptx(here.image(), here.host());
  if (gpus.empty() || !ptx_is_too_new(here)) return;
  const std::string own = own_driver_of(looked->need);
  here.find(kRule,
            {fmt::format("driver {} to compile the PTX of {}", own.empty() ? "as new" : own,
                         looked->need.shown()),
             fmt::format("{}; only PTX for {}", shown_driver(here.host()), gpus_listed(gpus)),
             both_sources(here, looked->need) + "; image device_code",
             update_to(own) + ", or take a build that holds machine code for this GPU"});
}

void forward_compatibility(Case& here) {
  const auto looked = look_forward(here);
  if (!looked) return;
  const CompatStanding& compat = looked->compat;
  here.find(
      "forward-compatibility",
      {fmt::format("a newer driver for {}", looked->need.shown()),
       fmt::format("{}, and `{}` of CUDA {} in the image, which works on it",
                   shown_driver(here.host()), compat.library.path, compat.library.cuda_version),
       both_sources(here, looked->need) + "; image forward_compatibility",
       fmt::format("see that `{}` comes first: `mlenv run` and NVIDIA's container toolkit do it, "
                   "elsewhere put its folder into LD_LIBRARY_PATH",
                   compat.library.path)});
}

void forward_compatibility_refused(Case& here) {
  const auto looked = look_at_driver(here, {});
  if (!looked) return;
  const auto& [need, standing, compat] = *looked;
  if (!compat.what) return;
  const bool for_gpu = *compat.what == Compat::refused_gpu;
  if (!for_gpu && *compat.what != Compat::refused_driver) return;
  const bool is_needed = standing == Standing::too_old;
  // NVIDIA's runtime puts a newer libcuda in front of the host's, needed or not, where it lists the
  // driver.
  const Text cuda = driver_cuda(here.host());
  const bool is_newer = cuda && is_older(*cuda, compat.library.cuda_version);
  if (!is_needed && !compat.forced && !(for_gpu && is_newer)) return;
  here.find(
      "forward-compatibility-refused",
      {for_gpu ? "a data-centre GPU for the image's own libcuda"
               : fmt::format("a driver of {} for the image's own libcuda",
                             compat.library.drivers.empty() ? "an older release"
                                                            : join(compat.library.drivers, ", ")),
       fmt::format("{}; `{}` of CUDA {} (error {})", compat.about, compat.library.path,
                   compat.library.cuda_version, for_gpu ? 804 : 803),
       both_sources(here, need) + "; image forward_compatibility",
       is_needed ? update_to(oldest_driver_for(need))
                 : fmt::format("take `{}` out of the image, or its folder out of "
                               "LD_LIBRARY_PATH: the host's driver is enough",
                               compat.library.path)});
}

void driver_below_recipe(Case& here) {
  constexpr const char* kRule = "driver-below-recipe";
  const Text& oldest = here.image().oldest_driver;
  const Text& kernel = here.host().nvidia.kernel_driver;
  if (!is_demand(oldest) || here.use().gpus == 0U || here.has_gpu().value != true) return;
  if (kernel && *kernel == "none") return;
  const Text driver = driver_of(here.host());
  // Windows' number is never below the one that Linux has for the same driver.
  if (!driver) {
    here.cannot_judge(kRule, "host nvidia.kernel_driver", driver.source);
    return;
  }
  if (!is_older(*driver, *oldest)) return;
  here.find(kRule, {fmt::format("driver {} or newer", *oldest), shown_driver(here.host()),
                    fmt::format("{}; {}", oldest.source, driver.source), update_to(*oldest)});
}

}  // namespace mlenv
