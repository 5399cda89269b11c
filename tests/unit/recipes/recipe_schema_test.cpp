#include "recipes/recipe_schema.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
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

bool is_supported(std::string_view key) {
  try {
    parse_recipe(fmt::format("name: x\nbase: debian:bookworm\n{}:\n", key), "r.yaml");
  } catch (const Error& error) {
    return std::string(error.what()).find("is not supported yet") == std::string::npos;
  }
  return true;
}

TEST(RecipeSchema, HasTheReadersKeysAndNoOthers) {
  Keys supported;
  for (const std::string_view key : recipe_keys()) {
    if (is_supported(key)) supported.emplace(key);
  }
  EXPECT_GE(supported.size(), 13U);
  EXPECT_EQ(keys_of(schema()["properties"]), supported);
}

TEST(RecipeSchema, HasTheKeysOfSources) {
  const auto set_of = [](const std::vector<std::string_view>& keys) {
    return Keys(keys.begin(), keys.end());
  };
  const json all = schema();
  EXPECT_EQ(keys_of(all["properties"]["sources"]["properties"]), set_of(source_keys()));
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
  for (const json& base : schema()["properties"]["base"]["enum"]) {
    EXPECT_NO_THROW(parse_recipe("name: x\nbase: " + base.get<std::string>() + "\n", "r.yaml"));
  }
}

}  // namespace
}  // namespace mlenv
