#include "recipes/resolve/cuda_conflict.hpp"

#include <fmt/core.h>

#include "recipes/mistakes.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kAddIndex =
    "add an index that has such builds under `sources: {pypi: […]}`";

}  // namespace

std::optional<Conflict> cuda_conflict(const WheelRequest& request, const WheelAnswer& answer,
                                      const FindWheels& find) {
  const Recipe& recipe = *request.recipe;
  if (!recipe.cuda) return std::nullopt;
  const std::string& wanted = recipe.cuda->text;
  const auto* resolution = std::get_if<WheelResolution>(&answer);
  if (resolution != nullptr && meets_cuda(wanted, *resolution)) return std::nullopt;

  const Alternatives alternatives(request, find);
  const auto plain = alternatives.with_cuda(std::nullopt);
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
    const auto near = alternatives.with_cuda(major);
    if (near && near->cuda) {
      conflict.facts.push_back(
          fmt::format("with `cuda: \"{}\"` it gets {}", major, described(recipe, *near)));
      conflict.hint = fmt::format("write `cuda: \"{}\"`, or {}", near->cuda->release, kAddIndex);
      return conflict;
    }
  }
  if (wanted != "cpu") conflict.hint = fmt::format("leave `cuda` out, or {}", kAddIndex);
  if (wanted != "cpu" && asks_old_tensorflow(recipe)) {
    conflict.facts.emplace_back("TensorFlow 2.5 to 2.13 is built for CUDA 11");
    conflict.hint = "write `cuda: \"11.8\"`, or allow a newer TensorFlow";
  }
  return conflict;
}

}  // namespace mlenv
