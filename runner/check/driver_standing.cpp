#include "runner/check/driver_standing.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/text.hpp"
#include "recipes/compat/cuda_releases.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// The file itself, not a library that has a copy within.
bool is_runtime_file(const FoundLibrary& library) {
  return library.path.empty() || library.path.find("libcudart") != std::string::npos;
}

const FoundLibrary* newest_runtime(const ImageFacts& image, std::string_view major) {
  if (!image.cuda_runtimes) return nullptr;
  const FoundLibrary* best = nullptr;
  for (const FoundLibrary& one : *image.cuda_runtimes) {
    if (one.version.empty() || (!major.empty() && major_of(one.version) != major)) continue;
    const bool better =
        best == nullptr || (is_runtime_file(one) && !is_runtime_file(*best)) ||
        (is_runtime_file(one) == is_runtime_file(*best) && is_older(best->version, one.version));
    if (better) best = &one;
  }
  return best;
}

CudaNeed need_of(const FoundLibrary& runtime) {
  return {version_prefix(runtime.version, 2),
          runtime.path.empty() ? "its CUDA runtime" : runtime.path, "image cuda_runtimes"};
}

/// The driver of the oldest release that is not older than this one: it runs that too.
std::string_view driver_that_surely_runs(std::string_view release) {
  std::string_view driver;
  for (const CudaRelease& one : cuda_releases()) {  // newest first
    if (!is_older(one.release, release)) driver = one.driver;
  }
  return driver;
}

/// That of a major version's newest release.
std::string_view newest_driver(std::string_view major) {
  for (const CudaRelease& one : cuda_releases()) {
    if (major_of(one.release) == major) return one.driver;
  }
  return {};
}

bool is_wsl(const Facts& host) { return host.system.wsl && *host.system.wsl; }

/// By the CUDA release that the driver names as its own.
std::optional<Standing> standing_by_release(const std::string& driver_cuda, const CudaNeed& need) {
  const std::string major = major_of(need.release);
  if (is_older(major_of(driver_cuda), major)) return Standing::too_old;
  if (is_older(major, major_of(driver_cuda))) return Standing::as_new;
  if (!need.is_exact()) return Standing::at_least_minor;
  if (!is_older(driver_cuda, need.release)) return Standing::as_new;
  return has_minor_compatibility(need.release) ? Standing::minor_version : Standing::too_old;
}

/// By its number; nullopt: the table does not tell.
std::optional<Standing> by_number(const std::string& driver, const CudaNeed& need) {
  std::string_view own = cuda_driver(need.release);
  if (own.empty()) {
    own = need.is_exact() ? driver_that_surely_runs(need.release) : newest_driver(need.release);
  }
  // Before the floor, which of CUDA 11 is above 11.0's own driver.
  if (!own.empty() && !is_older(driver, own)) return Standing::as_new;
  const std::string_view floor = cuda_driver_floor(need.release);
  if (floor.empty()) return std::nullopt;
  if (is_older(driver, floor)) return Standing::too_old;
  if (!need.is_exact()) return Standing::at_least_minor;
  if (cuda_driver(need.release).empty()) return std::nullopt;
  return Standing::minor_version;
}

/// Whether forward compatibility is for this GPU: data-centre products have it, GeForce and TITAN
/// do not (CUDA Compatibility guide, "Forward Compatibility"); of workstation ones only some.
std::optional<bool> may_use_compat(const std::string& name) {
  const auto says = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (says("GeForce") || says("TITAN")) return false;
  if (says("Tesla")) return true;
  for (const std::string_view word : split(name, ' ')) {
    const std::string product(word.substr(0, word.find('-')));
    // A100, H100, B200, GH200, L4, L40S, V100, T4, P100: never with RTX or Quadro before it.
    const std::size_t digit = product.find_first_of("0123456789");
    if (digit == std::string::npos || digit == 0) continue;
    constexpr std::array<std::string_view, 11> kSeries = {"A", "B", "GB", "GH", "H", "K",
                                                          "L", "M", "P",  "T",  "V"};
    const bool is_series =
        std::find(kSeries.begin(), kSeries.end(), product.substr(0, digit)) != kSeries.end();
    if (is_series && !says("RTX") && !says("Quadro")) return true;
  }
  return std::nullopt;
}

bool names_folder(const ImageFacts& image, const std::string& file) {
  const std::string* paths = variable_of(image, "LD_LIBRARY_PATH");
  const std::size_t slash = file.rfind('/');
  if (paths == nullptr || slash == std::string::npos) return false;
  const std::vector<std::string_view> folders = split(*paths, ':');
  return std::any_of(folders.begin(), folders.end(), [&](std::string_view folder) {
    while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
    return folder == std::string_view(file).substr(0, slash);
  });
}

/// Of the GPUs: refused by one, unknown for one, else works.
Fact<Compat> compat_on_gpus(const Facts& host, std::string& about) {
  if (!host.gpus) return unknown<Compat>(host.gpus.source);
  std::string doubt;
  for (const Gpu& gpu : *host.gpus) {
    const auto may = gpu.name ? may_use_compat(*gpu.name) : std::nullopt;
    if (may == false) {
      about = shown(gpu);
      return known(Compat::refused_gpu, "host gpus");
    }
    if (!may) {
      doubt = gpu.name ? fmt::format("whether `{}` is among the GPUs that may use it", *gpu.name)
                       : gpu.name.source;
    }
  }
  if (!doubt.empty()) return unknown<Compat>(doubt);
  return known(Compat::works, "host gpus");
}

}  // namespace

std::string CudaNeed::shown() const { return fmt::format("CUDA {} ({})", release, who); }

Fact<CudaNeed> cuda_need(const ImageFacts& image) {
  std::optional<CudaNeed> need;
  for (const FrameworkBuild& one : image.frameworks.value.value_or(std::vector<FrameworkBuild>{})) {
    if (one.cuda.empty() || one.cuda == "cpu") continue;
    CudaNeed asked{one.cuda, one.name, "image frameworks"};
    if (!one.version.empty()) asked.who += ' ' + one.version;
    if (!asked.is_exact()) {
      if (const auto* runtime = newest_runtime(image, asked.release)) {
        asked.release = version_prefix(runtime->version, 2);
      }
    }
    if (!need || is_older(need->release, asked.release)) need = std::move(asked);
  }
  if (!need) {
    if (const auto* runtime = newest_runtime(image, "")) need = need_of(*runtime);
  }
  if (need) return known(*need, need->source);
  if (!image.frameworks) return unknown<CudaNeed>(image.frameworks.source);
  if (!image.cuda_runtimes) return unknown<CudaNeed>(image.cuda_runtimes.source);
  return unknown<CudaNeed>("nothing in the image tells the release");
}

Text driver_of(const Facts& host) {
  const Text& kernel = host.nvidia.kernel_driver;
  if (kernel && *kernel != "none") return kernel;
  if (kernel) return unknown<std::string>("no module is loaded");
  return host.nvidia.user_driver ? host.nvidia.user_driver : kernel;
}

Text driver_cuda(const Facts& host) {
  if (host.nvidia.cuda_version) return host.nvidia.cuda_version;
  const Text driver = driver_of(host);
  if (!driver) return unknown<std::string>(driver.source);
  if (is_wsl(host)) return unknown<std::string>(host.nvidia.cuda_version.source);
  for (const CudaRelease& one : cuda_releases()) {
    if (!is_older(*driver, one.driver)) {
      return known(std::string(one.release), driver.source + ", by its number");
    }
  }
  return unknown<std::string>(fmt::format("driver {} is older than those known here", *driver));
}

Fact<Standing> driver_standing(const Facts& host, const CudaNeed& need) {
  const Text driver = driver_of(host);
  const Text& cuda = host.nvidia.cuda_version;
  std::optional<Standing> standing;
  // Windows numbers its drivers otherwise.
  if (driver && !is_wsl(host)) standing = by_number(*driver, need);
  if (!standing && cuda) standing = standing_by_release(*cuda, need);
  if (standing) return known(*standing, driver_source(host));
  if (!driver && !cuda) return unknown<Standing>(driver.source);
  if (is_wsl(host)) return unknown<Standing>(cuda.source);
  return unknown<Standing>(
      fmt::format("which drivers run CUDA {} is not known to this mlenv", need.release));
}

std::string oldest_driver_for(const CudaNeed& need) {
  return std::string(cuda_driver_floor(need.release));
}

std::string own_driver_of(const CudaNeed& need) { return std::string(cuda_driver(need.release)); }

std::string shown_driver(const Facts& host) {
  const Text driver = driver_of(host);
  const Text cuda = driver_cuda(host);
  if (!driver) return cuda ? fmt::format("a driver for CUDA {}", *cuda) : "a driver";
  if (cuda) return fmt::format("driver {} (CUDA {})", *driver, *cuda);
  return fmt::format("driver {}", *driver);
}

std::string driver_source(const Facts& host) {
  const Text driver = driver_of(host);
  return driver ? driver.source : driver_cuda(host).source;
}

CompatStanding compat_standing(const ImageFacts& image, const Facts& host, const CudaNeed& need) {
  CompatStanding out;
  out.what = known(Compat::none, image.forward_compatibility.source);
  if (!image.forward_compatibility) {
    out.what = compat_on_gpus(host, out.about);
    // Whatever the image holds, these GPUs may not use it.
    out.what = out.what && *out.what == Compat::refused_gpu
                   ? known(Compat::none, out.what.source)
                   : unknown<Compat>(image.forward_compatibility.source);
    return out;
  }
  for (const ForwardCompatibility& one : *image.forward_compatibility) {
    if (out.library.path.empty() || is_older(out.library.cuda_version, one.cuda_version)) {
      out.library = one;
    }
  }
  if (image.forward_compatibility->empty()) return out;
  // Facts that others wrote may not say: then by the folder's own name.
  out.forced = out.library.in_library_path ? *out.library.in_library_path
                                           : names_folder(image, out.library.path);
  if (is_older(major_of(out.library.cuda_version), major_of(need.release)) && !out.forced) {
    return out;
  }
  const Text driver = driver_of(host);
  if (!driver) {
    out.what = unknown<Compat>(driver.source);
    return out;
  }
  const std::vector<std::string>& branches = out.library.drivers;
  const Text cuda = driver_cuda(host);
  const bool is_listed = branches.empty() ? cuda && is_older(*cuda, out.library.cuda_version)
                                          : std::find(branches.begin(), branches.end(),
                                                      major_of(*driver)) != branches.end();
  out.what = compat_on_gpus(host, out.about);
  if (is_listed || (out.what && *out.what == Compat::refused_gpu)) return out;
  out.about = fmt::format("driver {}", *driver);
  out.what = known(Compat::refused_driver, driver.source);
  return out;
}

Fact<CodeStanding> code_standing(const ImageFacts& image, const Gpu& gpu) {
  if (!image.device_code) return unknown<CodeStanding>(image.device_code.source);
  const auto architecture = architecture_of(gpu);
  CodeStanding worst;
  for (const DeviceLibrary& library : *image.device_code) {
    if (!library.decides) continue;
    if (!architecture) return unknown<CodeStanding>(gpu.compute_capability.source);
    std::vector<DeviceCode> codes;
    for (const std::string& name : library.code) {
      if (const auto code = parse_device_code(name)) codes.push_back(*code);
    }
    const Coverage covered = coverage(codes, *architecture);
    const bool is_worse = worst.library.empty() || covered < worst.coverage;
    if (is_worse) worst = {covered, library.path, library.code};
  }
  return known(worst, "image device_code");
}

std::vector<const Gpu*> gpus_by_ptx(const ImageFacts& image, const Facts& host) {
  std::vector<const Gpu*> found;
  if (!host.gpus) return found;
  for (const Gpu& gpu : *host.gpus) {
    const auto standing = code_standing(image, gpu);
    if (standing && standing->coverage == Coverage::by_ptx) found.push_back(&gpu);
  }
  return found;
}

bool ptx_is_too_new(const Case& here) {
  const auto need = cuda_need(here.image());
  if (!need) return false;
  const auto standing = driver_standing(here.host(), *need);
  if (!standing || *standing != Standing::minor_version) return false;
  const CompatStanding compat = compat_standing(here.image(), here.host(), *need);
  const bool helps = compat.what && *compat.what == Compat::works &&
                     !is_older(compat.library.cuda_version, need->release);
  return !helps;
}

}  // namespace mlenv
