#include "recipes/recipe.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/recipe_reader.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/text.hpp"
#include "recipes/yaml.hpp"

namespace mlenv {

Recipe parse_recipe(std::string_view text, const fs::path& shown_path) {
  Mistakes mistakes(shown_path, std::string(text));
  const YamlDocument document = parse_yaml(text);
  for (const YamlMistake& mistake : document.mistakes) {
    mistakes.add(mistake.line, mistake.column, mistake.message);
  }
  Recipe recipe;
  recipe.path = shown_path;
  recipe.source = std::string(text);
  if (document.complete) RecipeReader(recipe, mistakes).read(document.root);
  if (!mistakes.empty()) throw mistakes.error("recipe-invalid");
  return recipe;
}

namespace {

/// A path that cannot be a recipe's, whatever lies there.
void check_path(const fs::path& path) {
  const auto mistake = [](std::string_view what) {
    return usage_error("recipe-invalid", "{}", what);
  };
  if (path.empty()) throw mistake("the recipe's path is empty").hint("name the recipe's file");
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    const fs::path inside = path / "recipe.yaml";
    throw mistake(fmt::format("`{}` is a folder, and a recipe is a file", path.string()))
        .hint(fs::exists(inside, unknown) ? fmt::format("name `{}`", inside.string())
                                          : "name the recipe's file in it");
  }
  if (path.extension() == ".lock" || path.extension() == ".built") {
    throw mistake(fmt::format("`{}` is written by mlenv and no recipe", path.string()))
        .hint("name the recipe's file, which lies beside it");
  }
}

std::string hint_for_absent(const fs::path& path) {
  std::vector<std::string> names;
  for (const fs::path& entry : list_folder(path.has_parent_path() ? path.parent_path() : ".")) {
    names.push_back(entry.filename().string());
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view near = nearest(path.filename().string(), candidates);
  if (near.ends_with(".yaml") || near.ends_with(".yml")) {
    return fmt::format("did you mean `{}`?", (path.parent_path() / near).string());
  }
  return "`mlenv init` writes a first recipe; else name the recipe's file";
}

/// What the recipe itself asks for is not to go by a line of a file that it names.
void refuse_left_out(const Recipe& recipe) {
  Mistakes mistakes(recipe.path, recipe.source);
  bool refused = false;
  const auto look = [&](const Placed& place) {
    const std::string name = package_of_requirement(place.text);
    if (!recipe.listed.steering.exclude.contains(name)) return;
    refused = true;
    mistakes.add(
        place.line, place.column,
        fmt::format("`{}` is asked for here, and a file under `requirements` leaves it out "
                    "(`exclude-dependencies`, or `excludes` of a uv.lock)",
                    name));
  };
  if (recipe.framework) look(*recipe.framework);
  for (const Placed& package : recipe.packages) look(package);
  if (refused) throw mistakes.error("recipe-invalid");
}

}  // namespace

Recipe read_recipe(const fs::path& path) {
  check_path(path);
  std::string text;
  try {
    text = read_small_file(path, size_limit::kRecipe);
  } catch (Error& error) {
    if (error.code() == "absent") error.hint(hint_for_absent(path));
    throw;
  }
  Recipe recipe = parse_recipe(text, path);
  take_listed(recipe, read_requirement_files(recipe));
  return recipe;
}

void take_listed(Recipe& recipe, RequirementLists listed) {
  recipe.listed = std::move(listed);
  refuse_left_out(recipe);
  add_steering(recipe.steering, recipe.listed.steering);
}

bool Recipe::has_own_base_source() const {
  return std::any_of(
      sources.debian.begin(), sources.debian.end(),
      [&](const RecipeSources::Debian& one) { return one.suite.empty() || one.suite == suite; });
}

Error recipe_error(const Recipe& recipe, const Placed& place, std::string_view message) {
  Mistakes mistakes(recipe.path, recipe.source);
  mistakes.add(place.line, place.column, std::string(message));
  return mistakes.error("recipe-invalid");
}

}  // namespace mlenv
