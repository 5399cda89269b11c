#include "recipes/recipe_bounds.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

Recipe recipe_of(const std::string& more) {
  return parse_recipe("name: x\nbase: debian:bookworm\n" + more, "recipe.yaml");
}

TEST(RecipeBounds, StandAtTheEndAndTakeThePlaceOfEarlierOnes) {
  RecipeBounds bounds;
  bounds.constraints = {"numpy<2"};
  const auto first = with_bounds(recipe_of("packages: [six]"), bounds);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->constraints, (std::vector<Placed>{{"numpy<2"}}));
  EXPECT_EQ(first->listed.constraint_texts(), (std::vector<std::string>{"numpy<2"}))
      << "what is locked is held to it";
  bounds.build_constraints = {"setuptools<66", "wheel<0.40"};
  bounds.build_needs = {{"pkg", {"numpy"}}};
  const auto second = with_bounds(*first, bounds);
  ASSERT_TRUE(second);
  EXPECT_TRUE(
      second->source.ends_with("constraints: [\"numpy<2\"]\n"
                               "build:\n  constraints: [\"setuptools<66\", \"wheel<0.40\"]\n"
                               "  requires:\n    pkg: [\"numpy\"]\n"))
      << second->source;
  EXPECT_EQ(second->packages.size(), 1U);
}

TEST(RecipeBounds, HaveWhatIsLeftOut) {
  RecipeBounds bounds;
  bounds.excluded = {"a-headless"};
  bounds.constraints = {"numpy<2"};
  const auto bounded = with_bounds(recipe_of("packages: [six]"), bounds);
  ASSERT_TRUE(bounded);
  EXPECT_TRUE(bounded->source.ends_with("constraints: [\"numpy<2\"]\nexclude: [\"a-headless\"]\n"))
      << bounded->source;
  EXPECT_FALSE(with_bounds(recipe_of("exclude: [b]\n"), bounds));
}

TEST(RecipeBounds, NotWhereTheRecipeHasTheKey) {
  RecipeBounds bounds;
  EXPECT_EQ(with_bounds(recipe_of("constraints: [six<2]\n"), bounds)->constraints.size(), 1U);
  bounds.constraints = {"numpy<2"};
  EXPECT_FALSE(with_bounds(recipe_of("constraints: [six<2]\n"), bounds));
  bounds = {};
  bounds.build_constraints = {"wheel<0.40"};
  EXPECT_FALSE(with_bounds(recipe_of("build: {network: true}\n"), bounds));
}

}  // namespace
}  // namespace mlenv
