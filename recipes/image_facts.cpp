#include "recipes/image_facts.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "images/inspect/cpu_table.hpp"
#include "recipes/compat/cuda_libraries.hpp"
#include "recipes/compat/framework_builds.hpp"
#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr const char* kAfterBuild = "known after the build";
constexpr const char* kAfterLock = "known after `mlenv lock`";
constexpr const char* kOfBase = "the image that is its base may bring some: known after the build";

using Libraries = std::vector<FoundLibrary>;
using Builds = std::vector<FrameworkBuild>;
using DeviceLibraries = std::vector<DeviceLibrary>;

std::string architecture_of_platform(const std::string& platform) {
  return platform.substr(platform.find('/') + 1);
}

struct MakeUnknown {
  const char* why;
  template <class T>
  void operator()(const char* /*name*/, Fact<T>& fact) const {
    fact = unknown<T>(why);
  }
  template <class T>
  void operator()(const char* /*name*/, T& /*certain*/) const {}
};

ImageFacts unknown_facts(const char* why) {
  ImageFacts facts;
  ImageFacts::fields(facts, MakeUnknown{why});
  return facts;
}

std::vector<Variable> heeded(const std::map<std::string, std::string>& environment) {
  std::vector<Variable> all;
  for (const auto& [name, value] : environment) {
    if (is_heeded_variable(name)) all.push_back({name, value});
  }
  return all;
}

/// `torch` of `pytorch>=2.9`; empty for what is no framework of ours.
std::string framework_name(const std::string& normalised) {
  constexpr std::array<std::string_view, 4> kNames = {"torch", "tensorflow", "tensorflow-cpu",
                                                      "jax"};
  const std::string name = normalised == "pytorch" ? "torch" : normalised;
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ? name : std::string{};
}

std::optional<Requirement> recipe_framework(const Recipe& recipe) {
  if (!recipe.framework) return std::nullopt;
  auto read = parse_requirement(recipe.framework->text);
  auto* requirement = std::get_if<Requirement>(&read);
  return requirement == nullptr ? std::nullopt : std::optional(std::move(*requirement));
}

/// `2.9.1` of `==2.9.1`; empty where it is not told exactly.
std::string exact_version(const std::string& specifier) {
  constexpr std::string_view kExactly = "==";
  const bool exact = specifier.starts_with(kExactly) && !specifier.ends_with(".*") &&
                     specifier.find(',') == std::string::npos;
  return exact ? specifier.substr(kExactly.size()) : std::string{};
}

std::optional<DeviceLibraries> known_code(const Builds& builds, const std::string& platform) {
  DeviceLibraries libraries;
  for (const FrameworkBuild& build : builds) {
    if (build.cuda.empty() || build.cuda == "cpu") continue;
    // The rows were read off wheels for that machine.
    if (architecture_of_platform(platform) != "amd64") return std::nullopt;
    const auto codes = known_device_code(build.name, build.version, build.cuda);
    if (!codes) return std::nullopt;
    DeviceLibrary library{build.name, {}, true};
    for (const DeviceCode& code : *codes) library.code.push_back(code.name());
    libraries.push_back(std::move(library));
  }
  return libraries;
}

/// The packages with the frameworks' device code: JAX's is in a plugin.
Builds builds_with_code(const Lock& lock, Builds builds) {
  for (FrameworkBuild& build : builds) {
    if (build.name != "jax") continue;
    for (const LockedWheel& wheel : lock.wheels) {
      const bool is_plugin = wheel.name.starts_with("jax-cuda") && wheel.name.ends_with("-pjrt");
      if (is_plugin) build = {wheel.name, wheel.version, build.cuda};
    }
  }
  return builds;
}

void take_framework(const Recipe& recipe, const std::string& platform, ImageFacts& facts) {
  const std::string cuda = recipe.cuda ? recipe.cuda->text : "";
  if (cuda == "cpu") facts.cuda_runtimes = known(Libraries{}, "the recipe's `cuda`");
  if (!cuda.empty() && cuda != "cpu") {
    facts.cuda_runtimes = known(Libraries{{"", cuda}}, "the recipe's `cuda`");
  }
  const auto framework = recipe_framework(recipe);
  const std::string name = framework ? framework_name(framework->normalised_name()) : "";
  if (name.empty() || cuda.empty()) return;
  const Builds builds = {{name, exact_version(framework->specifier), cuda}};
  facts.frameworks = known(builds, "the recipe's `framework` and `cuda`");
  if (const auto code = known_code(builds, platform)) {
    facts.device_code = known(*code, "builds of the framework that were read before");
  }
}

/// What builds for x86-64 are known to need; where that is nothing, the build will tell.
class CpuNeeds {
 public:
  void add(const std::string& package, const std::string& version) {
    std::vector<std::string> flags = known_cpu_flags(package, version);
    if (flags.empty()) return;
    needs_.push_back({version.empty() ? package : package + ' ' + version, std::move(flags)});
  }
  void take(ImageFacts& facts) && {
    if (facts.architecture != "amd64" || needs_.empty()) return;
    std::sort(needs_.begin(), needs_.end(),
              [](const CpuNeed& a, const CpuNeed& b) { return a.who < b.who; });
    facts.cpu = known(std::move(needs_), "builds of these packages that were read before");
  }

 private:
  std::vector<CpuNeed> needs_;
};

void take_cpu(const Recipe& recipe, ImageFacts& facts) {
  CpuNeeds needs;
  const auto add = [&](const std::string& text) {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    if (one != nullptr && one->marker.empty() && one->address.empty()) {
      needs.add(one->normalised_name(), exact_version(one->specifier));
    }
  };
  if (recipe.framework) add(recipe.framework->text);
  for (const Placed& package : recipe.packages) add(package.text);
  std::move(needs).take(facts);
}

void take_cpu(const Lock& lock, ImageFacts& facts) {
  CpuNeeds needs;
  for (const LockedWheel& wheel : lock.wheels) {
    const bool built_here =
        std::any_of(lock.sources.begin(), lock.sources.end(),
                    [&](const LockedSource& source) { return source.name == wheel.name; });
    if (!built_here) needs.add(wheel.name, wheel.version);
  }
  std::move(needs).take(facts);
}

std::string cuda_of(const Lock& lock) { return lock.cuda ? lock.cuda->release : "cpu"; }

Builds builds_in(const Lock& lock) {
  Builds builds;
  for (const LockedWheel& wheel : lock.wheels) {
    const std::string name = framework_name(wheel.name);
    if (!name.empty()) builds.push_back({name, wheel.version, cuda_of(lock)});
  }
  return builds;
}

Fact<Libraries> locked_libraries(const Lock& lock, std::string_view name) {
  const CudaLibrary* library = find_cuda_library(name);
  Libraries found;
  for (const LockedWheel& wheel : lock.wheels) {
    if (library != nullptr && is_package_of(*library, wheel.name)) {
      found.push_back({"", wheel.version});
    }
  }
  if (found.empty() && lock.base) return unknown<Libraries>(kOfBase);
  return known(std::move(found), "the lock's wheels");
}

void take_code(const Lock& lock, ImageFacts& facts) {
  if (!facts.frameworks) {
    facts.device_code = unknown<DeviceLibraries>(facts.frameworks.source);
    return;
  }
  if (lock.cuda && !lock.cuda->architectures.empty()) {
    facts.device_code =
        known(DeviceLibraries{{"the framework", lock.cuda->architectures, true}}, "the lock");
  } else if (const auto code =
                 known_code(builds_with_code(lock, *facts.frameworks), lock.platform)) {
    // Of other packages with device code nothing is known; with the framework's they are judged.
    if (!code->empty() || !lock.cuda) {
      facts.device_code = known(*code, "builds of the framework that were read before");
    }
  }
}

/// What glibc is configured with there (`--enable-kernel`), or needs for the machine at least: the
/// .note.ABI-tag of its libc.so.6 in Debian since 10 and Ubuntu since 18.04.
Fact<std::string> least_kernel_of(const Lock& lock) {
  for (const LockedDeb& deb : lock.debs) {
    if (lock.base || deb.name != "libc6") continue;
    const bool is_amd64 = architecture_of_platform(lock.platform) == "amd64";
    return known<std::string>(is_amd64 ? "3.2.0" : "3.7.0", "the lock's libc6 " + deb.version);
  }
  return unknown<std::string>(lock.base ? kOfBase : kAfterBuild);
}

void take_demands(const std::string& driver, const std::vector<std::string>& gpus,
                  const char* whose, ImageFacts& facts) {
  std::string oldest;
  std::copy_if(driver.begin(), driver.end(), std::back_inserter(oldest),
               [](char c) { return is_digit(c) || c == '.'; });
  facts.oldest_driver = known(oldest, fmt::format("{} `driver`", whose));
  facts.gpus = known(gpus, fmt::format("{} `gpus`", whose));
}

}  // namespace

ImageFacts image_facts_of(const Recipe& recipe, const std::string& platform) {
  ImageFacts facts = unknown_facts(kAfterLock);
  facts.name = recipe.name;
  facts.kind = "recipe";
  facts.architecture = architecture_of_platform(platform);
  facts.environment = heeded(recipe.env);
  if (!recipe.base_is_image) {
    facts.forward_compatibility =
        known(std::vector<ForwardCompatibility>{}, "no package of the base holds one");
    facts.user = known<std::string>("", "the base's");
  }
  const bool has_wheels = recipe.wants_python();
  if (!has_wheels && !recipe.base_is_image) {
    facts.frameworks = known(Builds{}, "the recipe names no Python packages");
    facts.cuda_runtimes = known(Libraries{}, facts.frameworks.source);
    facts.device_code = known(DeviceLibraries{}, facts.frameworks.source);
  }
  take_framework(recipe, platform, facts);
  take_cpu(recipe, facts);
  std::vector<std::string> gpus;
  for (const Placed& gpu : recipe.gpus) gpus.push_back(gpu.text);
  take_demands(recipe.oldest_driver(), gpus, "the recipe's", facts);
  return facts;
}

ImageFacts image_facts_of(const Lock& lock) {
  ImageFacts facts = unknown_facts(kAfterBuild);
  facts.name = lock.settings.name;
  facts.kind = "lock";
  facts.architecture = architecture_of_platform(lock.platform);
  facts.environment = heeded(lock.settings.env);
  facts.cuda_runtimes = locked_libraries(lock, "cudart");
  facts.cudnn = locked_libraries(lock, "cudnn");
  facts.nccl = locked_libraries(lock, "nccl");
  Builds builds = builds_in(lock);
  facts.frameworks = builds.empty() && lock.base ? unknown<Builds>(kOfBase)
                                                 : known(std::move(builds), "the lock's wheels");
  if (!lock.base) {
    facts.forward_compatibility =
        known(std::vector<ForwardCompatibility>{}, "no package of the lock holds one");
    facts.user = known<std::string>("", "the base's");
  }
  take_code(lock, facts);
  facts.least_kernel = least_kernel_of(lock);
  take_cpu(lock, facts);
  take_demands(lock.request.driver, lock.request.gpus, "the recipe's", facts);
  return facts;
}

}  // namespace mlenv
