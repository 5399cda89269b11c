#include "recipes/recipe.hpp"

#include "base/error.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/recipe_reader.hpp"
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

Recipe read_recipe(const fs::path& path) {
  try {
    return parse_recipe(read_file(path), path);
  } catch (Error& error) {
    if (error.code() == "absent") error.hint("name the recipe's file; docs/recipe.md shows one");
    throw;
  }
}

Error recipe_error(const Recipe& recipe, const Placed& place, std::string_view message) {
  Mistakes mistakes(recipe.path, recipe.source);
  mistakes.add(place.line, place.column, std::string(message));
  return mistakes.error("recipe-invalid");
}

}  // namespace mlenv
