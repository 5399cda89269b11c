// What `framework` and `cuda` of a recipe stand for in requirements and constraints.
#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "recipes/compat/cuda_libraries.hpp"
#include "recipes/compat/old_tensorflow.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/cuda.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheels.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

Requirement parsed_requirement(const Recipe& recipe, const Placed& place) {
  const auto read = parse_requirement(place.text);
  if (const auto* mistake = std::get_if<RequirementMistake>(&read)) {
    throw recipe_error(recipe, place, mistake->message);
  }
  return std::get<Requirement>(read);
}

void add_extra(Requirement& requirement, std::string extra) {
  std::vector<std::string>& extras = requirement.extras;
  if (std::find(extras.begin(), extras.end(), extra) == extras.end()) {
    extras.push_back(std::move(extra));
  }
}

std::string_view major_part(std::string_view release) {
  return release.substr(0, release.find('.'));
}

/// Whether only releases will do that bring jaxlib by an extra alone (the wheels' metadata: from
/// 0.4.27 on jax itself asks for it).
bool asks_jax_without_jaxlib(std::string_view specifier) {
  constexpr int kLastMicro = 38;
  constexpr int kFirstMicro = 27;
  constexpr int kNewestMinor = 30;
  if (trim(specifier).empty()) return false;
  for (int micro = kFirstMicro; micro <= kLastMicro; ++micro) {
    if (version_satisfies(fmt::format("0.4.{}", micro), specifier)) return false;
  }
  for (int minor = 5; minor <= kNewestMinor; ++minor) {
    for (int micro = 0; micro < 10; ++micro) {
      if (version_satisfies(fmt::format("0.{}.{}", minor, micro), specifier)) return false;
    }
  }
  return !version_satisfies("99", specifier);
}

/// The package that a framework's builds for `cuda` come from; `cuda` is empty, `cpu` or a release.
Requirement framework_package(Requirement framework, std::string_view cuda) {
  const std::string name = framework.normalised_name();
  const bool gpu = !cuda.empty() && cuda != "cpu";
  if (name == "pytorch") framework.name = "torch";
  if (name == "jax" && gpu) add_extra(framework, fmt::format("cuda{}", major_part(cuda)));
  if (name == "jax" && !gpu && asks_jax_without_jaxlib(framework.specifier)) {
    add_extra(framework, "cpu");
  }
  if (name == "tensorflow" && gpu && !wants_old_tensorflow(framework.specifier)) {
    add_extra(framework, "and-cuda");
  }
  if (name == "tensorflow" && cuda == "cpu" && !is_before_tensorflow_cpu(framework.specifier)) {
    framework.name = "tensorflow-cpu";
  }
  return framework;
}

}  // namespace

bool asks_old_tensorflow(const Recipe& recipe) {
  if (!recipe.framework) return false;
  const Requirement framework = parsed_requirement(recipe, *recipe.framework);
  return framework.normalised_name() == "tensorflow" && wants_old_tensorflow(framework.specifier);
}

FrameworkRequirements framework_requirements(const Recipe& recipe) {
  FrameworkRequirements all;
  const std::string cuda = recipe.cuda ? recipe.cuda->text : "";
  if (recipe.framework) {
    all.requirements.push_back(
        framework_package(parsed_requirement(recipe, *recipe.framework), cuda).str());
  }
  for (const Placed& package : recipe.packages) {
    all.requirements.push_back(parsed_requirement(recipe, package).str());
  }
  if (cuda == "cpu") all.constraints = no_cuda_constraints();
  if (!cuda.empty() && cuda != "cpu") all.constraints = cuda_constraints(cuda);
  for (const RecipeLibrary& library : recipe.libraries) {
    // Which of its packages comes in, the framework says.
    for (const std::string& package : packages_of(*find_cuda_library(library.name))) {
      all.constraints.push_back(package + library.specifier());
    }
  }
  for (const ListedText& one : recipe.listed.requirements) all.requirements.push_back(one.text);
  if (major_part(cuda) == kOldTensorflowCuda && asks_old_tensorflow(recipe)) {
    for (const std::string& one : old_tensorflow_libraries()) all.requirements.push_back(one);
  }
  for (const ListedText& one : recipe.listed.constraints) all.constraints.push_back(one.text);
  return all;
}

std::string unwanted_note(const WheelResolution& resolution) {
  std::vector<std::string> packages;
  std::vector<std::string> names;
  std::set<std::string> askers;
  for (const auto& [name, asking] : resolution.unwanted) {
    const LockedWheel* wheel = find_wheel(resolution.wheels, name);
    const std::uint64_t bytes = wheel == nullptr ? 0 : wheel->size_bytes;
    packages.push_back(fmt::format("{} ({} MB)", name, (bytes + 500'000) / 1'000'000));
    names.push_back(name);
    askers.insert(asking.begin(), asking.end());
  }
  std::string text = fmt::format("`cuda: cpu`, and yet the lock holds {}", join(packages, ", "));
  if (!askers.empty()) {
    text += fmt::format(", which {} {} for", join({askers.begin(), askers.end()}, " and "),
                        askers.size() == 1 ? "asks" : "ask");
  }
  text += fmt::format(": `exclude: [{}]` leaves {} out", join(names, ", "),
                      names.size() == 1 ? "it" : "them");
  if (askers.contains("xgboost")) text += ", and the package `xgboost-cpu` is xgboost without it";
  return text;
}

}  // namespace mlenv
