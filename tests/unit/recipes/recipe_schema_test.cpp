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

Keys schema_keys(const json& properties) {
  Keys keys;
  for (const auto& [key, value] : properties.items()) keys.insert(key);
  return keys;
}

Keys key_set(std::span<const std::string_view> keys) { return {keys.begin(), keys.end()}; }

TEST(RecipeSchema, HasTheReadersKeysAndNoOthers) {
  const json all = schema();
  EXPECT_EQ(schema_keys(all["properties"]), key_set(recipe_keys()));
  EXPECT_EQ(schema_keys(all["properties"]["libraries"]["properties"]), key_set(library_keys()));
  const json& defs = all["$defs"];
  EXPECT_EQ(schema_keys(defs["requirementSource"]["anyOf"][1]["properties"]),
            key_set(requirement_source_keys()));
  EXPECT_EQ(schema_keys(defs["step"]["properties"]), key_set(step_keys()));
  EXPECT_EQ(schema_keys(defs["dataSet"]["properties"]), key_set(data_set_keys()));
}

TEST(RecipeSchema, HasTheKeysOfSources) {
  const json all = schema();
  const json& sources = all["properties"]["sources"]["properties"];
  EXPECT_EQ(schema_keys(sources), key_set(source_keys()));
  EXPECT_EQ(schema_keys(sources["python"]["properties"]), key_set(python_source_keys()));
  EXPECT_EQ(schema_keys(all["$defs"]["archive"]["anyOf"][1]["properties"]),
            key_set(archive_keys()));
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
            key_set(gpu_architectures()));
}

}  // namespace
}  // namespace mlenv
