#include "recipes/resolve/cuda_conflict.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/mistakes.hpp"
#include "recipes/requirement.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kAddIndex =
    "add an index that has such builds under `sources: {pypi: […]}`";

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

bool meets(const std::string& wanted, const WheelResolution& resolution) {
  if (wanted == "cpu") {
    // Builds of PyTorch's own index carry what they were built for in their local version.
    return std::none_of(
        resolution.wheels.begin(), resolution.wheels.end(),
        [](const LockedWheel& wheel) { return wheel.version.find("+cu") != std::string::npos; });
  }
  const std::string found = resolution.cuda ? resolution.cuda->release : "";
  return found == wanted || found.starts_with(wanted + '.');
}

class Alternatives {
 public:
  Alternatives(const WheelRequest& request,
               const std::function<WheelAnswer(const WheelRequest&)>& find)
      : request_(request), find_(find) {}

  /// What the recipe gets with another `cuda`; nullopt when nothing.
  std::optional<WheelResolution> with(const std::optional<std::string>& cuda) const {
    Recipe recipe = *request_.recipe;
    recipe.cuda.reset();
    if (cuda) recipe.cuda = Placed{.text = *cuda};
    WheelRequest request = request_;
    request.recipe = &recipe;
    WheelAnswer answer = find_(request);
    auto* resolution = std::get_if<WheelResolution>(&answer);
    if (resolution == nullptr || (cuda && !meets(*cuda, *resolution))) return std::nullopt;
    return std::move(*resolution);
  }

 private:
  const WheelRequest& request_;
  const std::function<WheelAnswer(const WheelRequest&)>& find_;
};

std::string described(const Recipe& recipe, const WheelResolution& resolution) {
  const std::string framework = framework_wheel(recipe, resolution);
  const std::string what = framework.empty() ? "wheels" : framework;
  if (!resolution.cuda) return what + " without CUDA";
  return fmt::format("{} for CUDA {}", what, resolution.cuda->release);
}

}  // namespace

std::optional<Conflict> cuda_conflict(const WheelRequest& request, const WheelAnswer& answer,
                                      const std::function<WheelAnswer(const WheelRequest&)>& find) {
  const Recipe& recipe = *request.recipe;
  if (!recipe.cuda) return std::nullopt;
  const std::string& wanted = recipe.cuda->text;
  const auto* resolution = std::get_if<WheelResolution>(&answer);
  if (resolution != nullptr && meets(wanted, *resolution)) return std::nullopt;

  const Alternatives alternatives(request, find);
  const auto plain = alternatives.with(std::nullopt);
  if (!plain) return std::nullopt;  // without `cuda` it has no lock either
  Conflict conflict;
  conflict.headline =
      fmt::format("the Python indexes have no build {} that fits the recipe",
                  wanted == "cpu" ? std::string("without CUDA") : "for CUDA " + wanted);
  conflict.facts = {
      shown_mistake(recipe.path, recipe.source, recipe.cuda->line, recipe.cuda->column,
                    wanted == "cpu" ? std::string("the recipe asks for no CUDA")
                                    : "the recipe asks for CUDA " + wanted),
      fmt::format("without `cuda` the recipe gets {}", described(recipe, *plain))};
  conflict.hint = kAddIndex;
  const std::string major = wanted.substr(0, wanted.find('.'));
  if (wanted != "cpu" && major != wanted) {
    const auto near = alternatives.with(major);
    if (near && near->cuda) {
      conflict.facts.push_back(
          fmt::format("with `cuda: \"{}\"` it gets {}", major, described(recipe, *near)));
      conflict.hint = fmt::format("write `cuda: \"{}\"`, or {}", near->cuda->release, kAddIndex);
      return conflict;
    }
  }
  if (wanted != "cpu") conflict.hint = fmt::format("leave `cuda` out, or {}", kAddIndex);
  return conflict;
}

}  // namespace mlenv
