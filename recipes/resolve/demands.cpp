#include "recipes/resolve/demands.hpp"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "recipes/compat/cuda_libraries.hpp"
#include "recipes/compat/cuda_releases.hpp"
#include "recipes/compat/framework_builds.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/resolve/cuda.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostTries = 10;

using DemandFacts = std::vector<std::string>;

std::string shown_demand(const Recipe& recipe, const Placed& place, std::string_view message) {
  return shown_mistake(recipe.path, recipe.source, place.line, place.column, message);
}

std::string names_of(const std::vector<DeviceCode>& codes) {
  std::vector<std::string> names;
  names.reserve(codes.size());
  for (const DeviceCode& code : codes) names.push_back(code.name());
  return join(names, " ");
}

const LockedWheel* find_library(const CudaLibrary& library,
                                const std::vector<LockedWheel>& wheels) {
  const auto found = std::find_if(wheels.begin(), wheels.end(), [&](const LockedWheel& wheel) {
    return is_package_of(library, wheel.name);
  });
  return found == wheels.end() ? nullptr : &*found;
}

/// What is known of the GPU before any wheel is read; nullopt: nothing.
std::optional<Coverage> coverage_in(const WheelResolution& resolution, const DeviceCode& gpu) {
  const std::string& release = resolution.cuda->release;
  const auto most = most_coverage(release, gpu);
  if (most == Coverage::none) return Coverage::none;
  const auto codes = stated_device_code(resolution.wheels, release);
  if (!codes) return std::nullopt;
  return coverage(*codes, gpu);
}

/// The oldest driver that runs the wheels on the recipe's GPUs: PTX is only read by drivers that
/// know its version. A GPU that is newer than the release has such a driver anyway.
std::string needed_driver(const Recipe& recipe, const WheelResolution& resolution) {
  for (const Placed& place : recipe.gpus) {
    const auto gpu = parse_device_code(place.text);
    const std::string& release = resolution.cuda->release;
    if (gpu && coverage_in(resolution, *gpu) == Coverage::by_ptx &&
        most_coverage(release, *gpu) == Coverage::complete) {
      return std::string(cuda_driver(release));
    }
  }
  return resolution.cuda->min_driver;
}

/// What of the recipe's demands the wheels do not meet.
class Unmet {
 public:
  Unmet(const Recipe& recipe, const WheelResolution& resolution)
      : recipe_(recipe), resolution_(resolution), what_(described(recipe, resolution)) {
    if (!resolution.cuda) {
      no_cuda();
      return;
    }
    driver();
    for (const Placed& gpu : recipe.gpus) check(gpu);
    compiler();
    for (const RecipeLibrary& library : recipe.libraries) check(library);
  }

  bool empty() const { return facts_.empty(); }
  const DemandFacts& facts() const { return facts_; }
  /// Whether another release of CUDA could meet them.
  bool depends_on_release() const { return depends_on_release_; }
  std::string headline() const { return headlines_.empty() ? "" : headlines_.front(); }
  std::string hint() const { return hints_.empty() ? "" : hints_.front(); }

 private:
  void add(const Placed& place, std::string_view asked, std::string found, std::string headline,
           std::string hint) {
    facts_.push_back(shown_demand(recipe_, place, asked));
    if (std::find(facts_.begin(), facts_.end(), found) == facts_.end()) {
      facts_.push_back(std::move(found));
    }
    headlines_.push_back(std::move(headline));
    hints_.push_back(std::move(hint));
  }

  /// Any driver runs what needs none.
  void no_cuda() {
    const Placed* place = !recipe_.gpus.empty()        ? &recipe_.gpus.front()
                          : !recipe_.libraries.empty() ? &recipe_.libraries.front().version
                          : recipe_.compiler           ? &*recipe_.compiler
                                                       : nullptr;
    if (place == nullptr) return;
    depends_on_release_ = true;
    add(*place, "the recipe asks for this of its CUDA wheels",
        fmt::format("the recipe gets {}", what_), "the recipe's wheels hold no CUDA",
        "name a `framework` that uses CUDA, and its `cuda` release");
  }

  void driver() {
    const std::string needed = needed_driver(recipe_, resolution_);
    const std::string oldest = recipe_.oldest_driver();
    if (oldest.empty() || !is_older(oldest, needed)) return;
    depends_on_release_ = true;
    add(*recipe_.driver, fmt::format("drivers from {} on must be able to run it", oldest),
        fmt::format("{} runs with drivers from {} on", what_, needed),
        fmt::format("CUDA {} does not run with driver {}", resolution_.cuda->release, oldest),
        fmt::format(
            "no other CUDA release fits the recipe; write `driver: \">={}\"` and update the "
            "drivers, or loosen the framework's version",
            needed));
  }

  void check(const Placed& place) {
    const auto gpu = parse_device_code(place.text);
    if (!gpu || coverage_in(resolution_, *gpu) != Coverage::none) return;
    depends_on_release_ = true;
    const std::string& release = resolution_.cuda->release;
    const auto codes = stated_device_code(resolution_.wheels, release);
    add(place, fmt::format("code for {} is asked for", place.text),
        codes ? fmt::format("{} holds code for {}", what_, names_of(*codes))
              : fmt::format("CUDA {} no longer makes code for {}", release, place.text),
        fmt::format("the recipe's wheels hold no code for {}", place.text),
        fmt::format("leave out `{}`, or add an index that has builds for it under "
                    "`sources: {{pypi: […]}}`",
                    place.text));
  }

  void compiler() {
    if (!recipe_.compiler || wheels_hold_nvcc(resolution_.cuda->release)) return;
    depends_on_release_ = true;
    add(*recipe_.compiler, "the recipe asks for the CUDA compiler",
        fmt::format("{}; the Python packages of CUDA {} hold ptxas, and nvcc only from 13.0 on",
                    what_, major_of(resolution_.cuda->release)),
        fmt::format("CUDA {} has no compiler among the Python packages", resolution_.cuda->release),
        "leave `nvcc` out");
  }

  void check(const RecipeLibrary& library) {
    const CudaLibrary& known = *find_cuda_library(library.name);
    if (find_library(known, resolution_.wheels) != nullptr) return;
    add(library.version, fmt::format("the recipe asks for a version of {}", known.shown),
        fmt::format("{} brings none along", what_),
        fmt::format("the recipe's wheels hold no {}", known.shown),
        fmt::format("leave `{}` out, or add its package to `packages`", library.name));
  }

  const Recipe& recipe_;
  const WheelResolution& resolution_;
  std::string what_;
  DemandFacts facts_;
  std::vector<std::string> headlines_;
  std::vector<std::string> hints_;
  bool depends_on_release_ = false;
};

/// By the rules alone, before anything is asked of the index.
bool may_do(const Recipe& recipe, std::string_view release) {
  const std::string oldest = recipe.oldest_driver();
  if (!oldest.empty() && is_older(oldest, cuda_driver_floor(release))) return false;
  if (recipe.compiler && !wheels_hold_nvcc(release)) return false;
  return std::none_of(recipe.gpus.begin(), recipe.gpus.end(), [&](const Placed& place) {
    const auto gpu = parse_device_code(place.text);
    return gpu && most_coverage(release, *gpu) == Coverage::none;
  });
}

/// Values of `cuda` that may do, newest first; a major version stands before its releases, for it
/// finds the newest that the index has.
std::vector<std::string> candidates(const Recipe& recipe) {
  std::vector<std::string> values;
  std::set<std::string> majors;
  for (const CudaRelease& one : cuda_releases()) {
    if (!may_do(recipe, one.release)) continue;
    std::string major = major_of(one.release);
    if (majors.insert(major).second) values.push_back(std::move(major));
    values.emplace_back(one.release);
  }
  return values;
}

/// The nearest choice, and what the recipe gets with it.
std::optional<WheelResolution> nearest_choice(const WheelRequest& request, const FindWheels& find,
                                              const std::string& refused) {
  const Alternatives alternatives(request, find);
  std::set<std::string> seen = {refused};
  std::size_t tries = 0;
  for (const std::string& cuda : candidates(*request.recipe)) {
    if (seen.contains(cuda)) continue;
    if (tries++ == kMostTries) break;
    auto found = alternatives.with_cuda(cuda);
    if (!found || !found->cuda || !seen.insert(found->cuda->release).second) continue;
    if (Unmet(*request.recipe, *found).empty()) return found;
  }
  return std::nullopt;
}

Conflict unmet_conflict(const WheelRequest& request, const WheelResolution& resolution,
                        const Unmet& unmet, const FindWheels& find) {
  const Recipe& recipe = *request.recipe;
  Conflict conflict;
  conflict.headline = unmet.headline();
  conflict.facts = unmet.facts();
  conflict.hint = unmet.hint();
  if (!unmet.depends_on_release()) return conflict;
  const std::string refused = resolution.cuda ? resolution.cuda->release : "";
  const auto choice = nearest_choice(request, find, refused);
  if (!choice) return conflict;
  const std::string& release = choice->cuda->release;
  std::string what = described(recipe, *choice);
  const auto codes = stated_device_code(choice->wheels, release);
  if (!recipe.gpus.empty() && codes) what += fmt::format(" (code for {})", names_of(*codes));
  conflict.hint =
      fmt::format("write `cuda: \"{}\"`, which locks {} and runs with drivers from {} on", release,
                  what, needed_driver(recipe, *choice));
  return conflict;
}

/// `libraries` leave no set of wheels; without them there is one.
std::optional<Conflict> libraries_conflict(const WheelRequest& request, const FindWheels& find) {
  const Recipe& recipe = *request.recipe;
  if (recipe.libraries.empty()) return std::nullopt;
  const auto plain = Alternatives(request, find).without_libraries();
  if (!plain) return std::nullopt;
  Conflict conflict;
  conflict.headline = "the Python indexes have no set of wheels with the libraries asked for";
  conflict.hint = "loosen `libraries`, or the framework's version";
  for (const RecipeLibrary& library : recipe.libraries) {
    const CudaLibrary& known = *find_cuda_library(library.name);
    const LockedWheel* wheel = find_library(known, plain->wheels);
    if (wheel == nullptr || version_satisfies(wheel->version, library.specifier())) continue;
    conflict.facts.push_back(
        shown_demand(recipe, library.version,
                     fmt::format("the recipe asks for {} {}", known.shown, library.version.text)));
    conflict.facts.push_back(fmt::format("without it the recipe gets {}, and {} {}",
                                         described(recipe, *plain), known.shown, wheel->version));
  }
  return conflict;
}

}  // namespace

std::optional<std::vector<DeviceCode>> stated_device_code(const std::vector<LockedWheel>& wheels,
                                                          const std::string& cuda) {
  std::optional<std::vector<DeviceCode>> common;
  for (const LockedWheel& wheel : wheels) {
    // The rows were read off wheels for that machine; builds for others hold other code.
    const auto name = parse_wheel_name(wheel.file);
    if (!name || !runs_on(*name, "x86_64")) continue;
    const auto codes = known_device_code(wheel.name, wheel.version, cuda);
    if (!codes) continue;
    if (!common) {
      common = *codes;
      continue;
    }
    std::erase_if(*common, [&](const DeviceCode& one) {
      return coverage(*codes, one) != Coverage::complete;
    });
  }
  return common;
}

std::optional<Conflict> demand_conflict(const WheelRequest& request, const WheelAnswer& answer,
                                        const FindWheels& find) {
  if (!request.recipe->demands_of_cuda()) return std::nullopt;
  const auto* resolution = std::get_if<WheelResolution>(&answer);
  if (resolution == nullptr) return libraries_conflict(request, find);
  const Unmet unmet(*request.recipe, *resolution);
  if (unmet.empty()) return std::nullopt;
  return unmet_conflict(request, *resolution, unmet, find);
}

WheelAnswer with_compiler(const WheelRequest& request, WheelAnswer answer, const FindWheels& find) {
  const auto* resolution = std::get_if<WheelResolution>(&answer);
  if (!request.recipe->compiler || resolution == nullptr || !resolution->cuda) return answer;
  const std::string& release = resolution->cuda->release;
  if (!wheels_hold_nvcc(release)) return answer;
  WheelRequest again = request;
  again.compiler = release;
  again.kept = resolution->wheels;
  return find(again);
}

void add_compiler(UvQuestion& question, const std::string& release) {
  question.requirements.push_back(fmt::format("cuda-toolkit[nvcc,cccl,cudart]=={}.*", release));
  question.constraints.push_back(fmt::format("nvidia-cuda-runtime=={}.*", release));
  question.constraints.push_back(fmt::format("nvidia-cuda-nvcc=={}.*", release));
}

void describe_cuda(const Recipe& recipe, WheelResolution& resolution) {
  if (!recipe.demands_of_cuda() || !resolution.cuda) return;
  LockedCuda& cuda = *resolution.cuda;
  cuda.min_driver = needed_driver(recipe, resolution);
  if (const auto* cudnn = find_library(*find_cuda_library("cudnn"), resolution.wheels)) {
    cuda.cudnn = cudnn->version;
  }
  if (const auto* nccl = find_library(*find_cuda_library("nccl"), resolution.wheels)) {
    cuda.nccl = nccl->version;
  }
  if (const auto codes = stated_device_code(resolution.wheels, cuda.release)) {
    for (const DeviceCode& code : *codes) cuda.architectures.push_back(code.name());
  }
}

}  // namespace mlenv
