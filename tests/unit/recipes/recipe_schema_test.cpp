#include "recipes/recipe_schema.hpp"

#include <set>
#include <span>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "recipes/compat/architecture.hpp"
#include "recipes/distribution.hpp"
#include "recipes/recipe.hpp"

namespace mlenv {
namespace {

using nlohmann::json;
using Keys = std::set<std::string>;

json schema() { return json::parse(recipe_schema()); }

Keys keys_of(const json& properties) {
  Keys keys;
  for (const auto& [key, value] : properties.items()) keys.insert(key);
  return keys;
}

Keys set_of(std::span<const std::string_view> keys) { return {keys.begin(), keys.end()}; }

TEST(RecipeSchema, HasTheReadersKeysAndNoOthers) {
  const json all = schema();
  EXPECT_EQ(keys_of(all["properties"]), set_of(recipe_keys()));
  EXPECT_EQ(keys_of(all["properties"]["libraries"]["properties"]), set_of(library_keys()));
  const json& defs = all["$defs"];
  EXPECT_EQ(keys_of(defs["requirementSource"]["anyOf"][1]["properties"]),
            set_of(requirement_source_keys()));
  EXPECT_EQ(keys_of(defs["step"]["properties"]), set_of(step_keys()));
  EXPECT_EQ(keys_of(defs["dataSet"]["properties"]), set_of(data_set_keys()));
}

TEST(RecipeSchema, HasTheKeysOfSources) {
  const json all = schema();
  const json& sources = all["properties"]["sources"]["properties"];
  EXPECT_EQ(keys_of(sources), set_of(source_keys()));
  EXPECT_EQ(keys_of(sources["python"]["properties"]), set_of(python_source_keys()));
  EXPECT_EQ(keys_of(all["$defs"]["archive"]["anyOf"][1]["properties"]), set_of(archive_keys()));
}

/// A value as YAML; JSON is YAML too.
TEST(RecipeSchema, ExamplesAreRecipes) {
  const json all = schema();
  int count = 0;
  for (const auto& [key, value] : all["properties"].items()) {
    EXPECT_TRUE(value.contains("description")) << key;
    for (const json& example : value.value("examples", json::array())) {
      json recipe = {{"name", "x"}, {"base", "debian:bookworm"}, {"framework", "pytorch"}};
      recipe[key] = example;
      EXPECT_NO_THROW(parse_recipe(recipe.dump(), "r.yaml")) << recipe.dump();
      ++count;
    }
  }
  EXPECT_GE(count, 10);
}

TEST(RecipeSchema, KnowsTheReleasesOfTheReader) {
  Keys known;
  for (const Distribution& one : distributions()) {
    for (const std::string_view suite : one.suites) {
      known.insert(fmt::format("{}:{}", one.id, suite));
    }
  }
  EXPECT_EQ(schema()["$defs"]["suite"]["enum"].get<Keys>(), known);
}

TEST(RecipeSchema, KnowsTheArchitecturesOfTheReader) {
  EXPECT_EQ(schema()["properties"]["gpus"]["items"]["enum"].get<Keys>(),
            set_of(gpu_architectures()));
}

}  // namespace
}  // namespace mlenv
