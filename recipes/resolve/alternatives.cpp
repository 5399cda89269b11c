#include "recipes/resolve/alternatives.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/requirement.hpp"

namespace mlenv {
namespace {

/// The wheel that the recipe's framework is: `torch 2.10.0`; empty when there is none.
std::string framework_wheel(const Recipe& recipe, const WheelResolution& resolution) {
  const auto requirements = framework_requirements(recipe).requirements;
  if (requirements.empty()) return {};
  const auto read = parse_requirement(requirements.front());
  const auto* first = std::get_if<Requirement>(&read);
  if (first == nullptr) return {};
  for (const LockedWheel& wheel : resolution.wheels) {
    if (wheel.name == first->normalised_name()) return wheel.name + ' ' + wheel.version;
  }
  return {};
}

}  // namespace

bool meets_cuda(const std::string& wanted, const WheelResolution& resolution) {
  if (wanted == "cpu") {
    if (resolution.cuda) return false;
    // Builds of PyTorch's own index carry what they were built for in their local version.
    return std::none_of(
        resolution.wheels.begin(), resolution.wheels.end(),
        [](const LockedWheel& wheel) { return wheel.version.find("+cu") != std::string::npos; });
  }
  const std::string found = resolution.cuda ? resolution.cuda->release : "";
  return found == wanted || found.starts_with(wanted + '.');
}

std::string described(const Recipe& recipe, const WheelResolution& resolution) {
  const std::string framework = framework_wheel(recipe, resolution);
  const std::string what = framework.empty() ? "wheels" : framework;
  if (!resolution.cuda) return what + " without CUDA";
  return fmt::format("{} for CUDA {}", what, resolution.cuda->release);
}

std::optional<WheelResolution> Alternatives::of(const Recipe& recipe) const {
  WheelRequest request = request_;
  request.recipe = &recipe;
  WheelAnswer answer = find_(request);
  auto* resolution = std::get_if<WheelResolution>(&answer);
  if (resolution == nullptr) return std::nullopt;
  return std::move(*resolution);
}

std::optional<WheelResolution> Alternatives::with_cuda(
    const std::optional<std::string>& cuda) const {
  Recipe recipe = *request_.recipe;
  recipe.cuda.reset();
  if (cuda) recipe.cuda = Placed{.text = *cuda};
  auto found = of(recipe);
  if (found && cuda && !meets_cuda(*cuda, *found)) return std::nullopt;
  return found;
}

std::optional<WheelResolution> Alternatives::without_libraries() const {
  Recipe recipe = *request_.recipe;
  recipe.libraries.clear();
  return of(recipe);
}

}  // namespace mlenv
