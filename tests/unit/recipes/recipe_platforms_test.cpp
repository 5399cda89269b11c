#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/platforms.hpp"
#include "recipes/recipe.hpp"
#include "tests/support/small_recipe.hpp"

namespace mlenv {
namespace {

using test::mistakes_of;
using test::recipe_with;

TEST(RecipePlatforms, AreSortedAndOneWhereNoneIsNamed) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(recipe_with("").wanted_platforms(), Names{"linux/amd64"});
  EXPECT_EQ(recipe_with("platforms:\n").wanted_platforms(), Names{"linux/amd64"});
  EXPECT_EQ(recipe_with("platforms: []\n").wanted_platforms(), Names{"linux/amd64"});
  EXPECT_EQ(recipe_with("platforms: [linux/arm64]\n").wanted_platforms(), Names{"linux/arm64"});
  EXPECT_EQ(recipe_with("platforms: [linux/arm64, linux/amd64]\n").wanted_platforms(),
            (Names{"linux/amd64", "linux/arm64"}));
}

TEST(RecipePlatforms, MistakesAreShownWhereTheyAre) {
  const auto expect = [](const std::string& rest, std::string_view words) {
    const std::string found = mistakes_of(rest);
    EXPECT_NE(found.find(words), std::string::npos) << found;
  };
  expect("platforms: [linux/amd64, arm64]\n",
         "recipe.yaml:3:26: `arm64` is not a platform; did you mean `linux/arm64`?");
  expect("platforms: [linux/aarch64]\n", "did you mean `linux/arm64`?");
  expect("platforms: [linux/amd46]\n", "did you mean `linux/amd64`?");
  expect("platforms: [windows/amd64]\n", "there are linux/amd64 and linux/arm64");
  expect("platforms: [linux/riscv64]\n", "there are linux/amd64 and linux/arm64");
  expect("platforms: [linux/arm64, linux/arm64]\n",
         "recipe.yaml:3:26: `linux/arm64` is there twice");
  expect("platforms: linux/arm64\n", "`platforms` is a list, as in `[linux/amd64, linux/arm64]`");
  expect(
      "platforms: [linux/amd64, linux/arm64]\nsources:\n  python: {url: \"https://h/a.tar\", "
      "sha256: " +
          std::string(64, 'a') + "}\n",
      "recipe.yaml:3:26: a Python of the recipe's own");
}

TEST(Platforms, AreKnownByOtherNamesToo) {
  EXPECT_EQ(architecture_of("linux/arm64"), "arm64");
  EXPECT_EQ(meant_platform("x86_64"), "linux/amd64");
  EXPECT_EQ(meant_platform("linux/arm64/v8"), "linux/arm64");
  EXPECT_EQ(meant_platform("plan9"), "");
}

}  // namespace
}  // namespace mlenv
