#include "recipes/recipe_change.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/requirement_files.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

Recipe whole_recipe(const std::string& text) { return parse_recipe(text, "r.yaml"); }

/// With its own constraints among what it lists, as a file's are.
Recipe read_lists(Recipe recipe) {
  take_listed(recipe, read_requirement_files(recipe));
  return recipe;
}

std::string changed_text(const std::string& text, const RecipeChange& change) {
  const Recipe after = changed_recipe(whole_recipe(text), change, "r.suggested.yaml");
  EXPECT_EQ(after.path, "r.suggested.yaml");
  EXPECT_EQ(parse_recipe(after.source, "r.yaml").name, "x");
  return after.source;
}

constexpr const char* kRecipe =
    "# ours\nname: x\nbase: debian:bookworm\nframework: pytorch==2.15.0  # pinned\n\n"
    "packages: [numpy]\n";

TEST(RecipeChange, ACudaReleaseIsAddedBehindTheFramework) {
  EXPECT_EQ(changed_text(kRecipe, {.cuda = "12.8"}),
            "# ours\nname: x\nbase: debian:bookworm\nframework: pytorch==2.15.0  # pinned\n"
            "cuda: \"12.8\"\n\npackages: [numpy]\n");
}

TEST(RecipeChange, TheFrameworksVersionChangesWhereItStands) {
  EXPECT_EQ(changed_text(kRecipe, {.framework = "==2.10.*", .cuda = "12.8"}),
            "# ours\nname: x\nbase: debian:bookworm\nframework: pytorch==2.10.*  # pinned\n"
            "cuda: \"12.8\"\n\npackages: [numpy]\n");
  EXPECT_EQ(changed_text("name: x\nbase: debian:bookworm\npackages:\n  - torch  # why\n  - six\n",
                         {.framework = "==2.7.*", .cuda = "12.6"}),
            "name: x\nbase: debian:bookworm\ncuda: \"12.6\"\npackages:\n  - torch==2.7.*  # why\n"
            "  - six\n");
}

TEST(RecipeChange, ConstraintsAreAddedToThoseThatAreThere) {
  EXPECT_EQ(changed_text(kRecipe, {.cuda = "11.7", .constraints = {"numpy<2"}}),
            "# ours\nname: x\nbase: debian:bookworm\nframework: pytorch==2.15.0  # pinned\n"
            "cuda: \"11.7\"\n\npackages: [numpy]\nconstraints: [numpy<2]\n");
  const std::string text = "name: x\nbase: debian:bookworm\nconstraints: [\"six<2\"]\n";
  const Recipe after =
      changed_recipe(read_lists(whole_recipe(text)), {.constraints = {"numpy<2"}}, "s.yaml");
  EXPECT_EQ(after.source, "name: x\nbase: debian:bookworm\nconstraints: [\"six<2\", numpy<2]\n");
  EXPECT_EQ(after.listed.constraint_texts(), (std::vector<std::string>{"numpy<2", "six<2"}));
}

TEST(RecipeChange, QuotesAndCommentsOfAValueStay) {
  EXPECT_EQ(changed_text("name: x\nbase: debian:bookworm\ncuda: '13.2' # new\nframework: jax\n",
                         {.cuda = "12"}),
            "name: x\nbase: debian:bookworm\ncuda: '12' # new\nframework: jax\n");
}

TEST(RecipeChange, JaxsExtraNamesTheMajor) {
  EXPECT_EQ(changed_text("name: x\nbase: debian:bookworm\npackages: [\"jax[cuda13]>=0.9\"]\n",
                         {.cuda = "12"}),
            "name: x\nbase: debian:bookworm\ncuda: \"12\"\npackages: [\"jax[cuda12]>=0.9\"]\n");
}

TEST(RecipeChange, DemandsAreLoosenedOrTakenOut) {
  const std::string text =
      "name: x\nbase: debian:bookworm\nframework: pytorch\ndriver: \">=580\"\n"
      "gpus:\n  - sm_80  # A100\nlibraries: {nccl: \">=2\"}\nworkdir: /w\n";
  EXPECT_EQ(changed_text(text, {.driver = ">=535.183.06", .gpus = {"sm_60"}}),
            "name: x\nbase: debian:bookworm\nframework: pytorch\ndriver: \">=535.183.06\"\n"
            "gpus:\n  - sm_80  # A100\n  - sm_60\nlibraries: {nccl: \">=2\"}\nworkdir: /w\n");
  EXPECT_EQ(changed_text(text, {.cuda = "cpu", .no_demands = true}),
            "name: x\nbase: debian:bookworm\nframework: pytorch\ncuda: cpu\nworkdir: /w\n");
}

TEST(RecipeChange, WhatCannotBeWrittenIsLeftToThePerson) {
  const Recipe odd =
      whole_recipe("{name: x, base: 'debian:bookworm', framework: pytorch, driver: '>=580'}\n");
  EXPECT_EQ(code_of([&] { (void)changed_recipe(odd, {.no_demands = true}, "s.yaml"); }),
            "recipe-layout");
}

TEST(RecipeChange, NamedFrameworks) {
  const auto named = named_framework(whole_recipe(kRecipe));
  ASSERT_TRUE(named);
  EXPECT_EQ(named->package, "torch");
  EXPECT_FALSE(named->in_packages);
  EXPECT_FALSE(
      named_framework(whole_recipe("name: x\nbase: debian:bookworm\npackages: [numpy]\n")));
  EXPECT_EQ(shown(whole_recipe(kRecipe), {.framework = "==2.10.*", .cuda = "12.8"}),
            "`framework: pytorch==2.10.*`, `cuda: \"12.8\"`");
}

}  // namespace
}  // namespace mlenv
