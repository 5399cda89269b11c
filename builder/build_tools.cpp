#include "builder/build_tools.hpp"

#include <memory>

#include "base/error.hpp"
#include "recipes/mended_requirement.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/demands.hpp"

namespace mlenv {

Recipe recipe_of_tools(const Recipe& recipe) {
  Recipe wanted;
  wanted.path = recipe.path.parent_path() / "[build-system]";
  wanted.sources = recipe.sources;
  wanted.listed.indexes = recipe.listed.indexes;
  wanted.steering.indexes = recipe.steering.indexes;
  wanted.index_folders = recipe.index_folders;
  return wanted;
}

Matched matched_with(const std::vector<LockedWheel>& tools, const std::string& package,
                     const Recipe& recipe, const std::vector<LockedWheel>& image) {
  Matched matched;
  for (const std::string& text : build_settings(recipe.steering.build, package).requirements) {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    if (one == nullptr) continue;
    const std::string name = one->normalised_name();
    const LockedWheel* tool = find_wheel(tools, name);
    const bool of_image = find_wheel(image, name) != nullptr;
    matched[name] = of_image && tool != nullptr ? tool->version : std::string{};
  }
  return matched;
}

ToolQuestion::ToolQuestion(const Recipe& recipe, const BuildSettings& settings,
                           const std::vector<LockedWheel>& image)
    : recipe_(recipe_of_tools(recipe)) {
  for (const std::string& one : settings.constraints) constrain(one);
  for (const std::string& one : settings.requirements) require_of_image(one, image);
  if (recipe.compiler) require_compiler(image);
}

void ToolQuestion::require(const std::vector<std::string>& texts, const std::string& shown) {
  for (const std::string& one : texts) {
    const auto read = parse_requirement(one);
    const auto* requirement = std::get_if<Requirement>(&read);
    if (requirement != nullptr && !requirement->address.empty()) {
      throw failure("bad-source", "`{}` cannot be built", shown)
          .because(fmt::format("its build requires `{}`, and build requirements come from indexes",
                               requirement->str()));
    }
    recipe_.packages.push_back({mended_requirement(one), 1, 1});
  }
}

void ToolQuestion::constrain(const std::string& text) {
  static const auto own_file =
      std::make_shared<const RequirementsText>(RequirementsText{"build: constraints", {}});
  recipe_.listed.constraints.push_back({text, own_file, 1, 1});
}

void ToolQuestion::require_of_image(const std::string& text,
                                    const std::vector<LockedWheel>& image) {
  recipe_.packages.push_back({text, 1, 1});
  const auto read = parse_requirement(text);
  const auto* one = std::get_if<Requirement>(&read);
  if (one == nullptr) return;
  const LockedWheel* wheel = find_wheel(image, one->normalised_name());
  matched_[one->normalised_name()] = wheel == nullptr ? std::string{} : wheel->version;
  if (wheel != nullptr) constrain(fmt::format("{}=={}", wheel->name, wheel->version));
}

/// Where the image gets nvcc, builds do.
void ToolQuestion::require_compiler(const std::vector<LockedWheel>& image) {
  const std::string release = compiler_release(image);
  if (release.empty()) return;
  for (const std::string& one : compiler_requirements(release)) {
    recipe_.packages.push_back({one, 1, 1});
  }
  for (const std::string& one : compiler_constraints(release)) constrain(one);
}

}  // namespace mlenv
