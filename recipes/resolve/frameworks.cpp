// What `framework` and `cuda` of a recipe stand for in requirements and constraints.
#include <algorithm>

#include "base/error.hpp"
#include "recipes/compat/cuda_libraries.hpp"
#include "recipes/compat/old_tensorflow.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/cuda.hpp"
#include "recipes/resolve/wheels.hpp"

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

/// The package that a framework's builds for `cuda` come from; `cuda` is empty, `cpu` or a release.
Requirement framework_package(Requirement framework, std::string_view cuda) {
  const std::string name = framework.normalised_name();
  const bool gpu = !cuda.empty() && cuda != "cpu";
  if (name == "pytorch") framework.name = "torch";
  if (name == "jax" && gpu) add_extra(framework, fmt::format("cuda{}", major_part(cuda)));
  if (name == "tensorflow" && gpu && !wants_old_tensorflow(framework.specifier)) {
    add_extra(framework, "and-cuda");
  }
  if (name == "tensorflow" && cuda == "cpu") framework.name = "tensorflow-cpu";
  return framework;
}

/// Whether the recipe's framework is a TensorFlow that names none of the libraries of `cuda`.
bool brings_old_tensorflow(const Recipe& recipe) {
  if (!recipe.framework || !recipe.cuda || major_part(recipe.cuda->text) != kOldTensorflowCuda) {
    return false;
  }
  const Requirement framework = parsed_requirement(recipe, *recipe.framework);
  return framework.normalised_name() == "tensorflow" && wants_old_tensorflow(framework.specifier);
}

}  // namespace

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
  if (brings_old_tensorflow(recipe)) {
    for (const std::string& one : old_tensorflow_libraries()) all.requirements.push_back(one);
  }
  for (const ListedText& one : recipe.listed.constraints) all.constraints.push_back(one.text);
  return all;
}

}  // namespace mlenv
