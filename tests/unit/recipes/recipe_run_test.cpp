#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/lock.hpp"
#include "recipes/recipe.hpp"

namespace mlenv {
namespace {

Recipe recipe_with_steps(const std::string& run) {
  return parse_recipe("name: a\nbase: debian:bookworm\nrun:\n" + run, "recipe.yaml");
}

std::string run_mistakes(const std::string& run) {
  try {
    recipe_with_steps(run);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "recipe-invalid");
    return error.what();
  }
  return {};
}

TEST(RecipeRun, IsAListOfCommandsAndMaps) {
  const Recipe recipe = recipe_with_steps(
      "  - make -C /workspace/ext\n"
      "  - |\n    one\n    two\n\n"
      "  - {run: pip install x, network: true, secrets: [netrc, a.b, netrc]}\n");
  ASSERT_EQ(recipe.run.size(), 3U);
  EXPECT_EQ(recipe.run[0].command.text, "make -C /workspace/ext");
  EXPECT_EQ(recipe.run[0].command.line, 4);
  EXPECT_FALSE(recipe.run[0].network);
  EXPECT_EQ(recipe.run[1].command.text, "one\ntwo");
  EXPECT_EQ(recipe.run[2].command.text, "pip install x");
  EXPECT_TRUE(recipe.run[2].network);
  EXPECT_EQ(recipe.run[2].secrets, (std::vector<std::string>{"a.b", "netrc"}));
}

TEST(RecipeRun, NamesWhatIsWrong) {
  EXPECT_NE(run_mistakes("  make\n").find("`run` is a list of commands"), std::string::npos);
  EXPECT_NE(run_mistakes("  - [make]\n").find("a step is a command"), std::string::npos);
  EXPECT_NE(run_mistakes("  - ''\n").find("the command is empty"), std::string::npos);
  EXPECT_NE(run_mistakes("  - {network: true}\n").find("the step has no command"),
            std::string::npos);
  EXPECT_NE(run_mistakes("  - {run: x, network: 'yes'}\n").find("`network` is `true` or `false`"),
            std::string::npos);
  EXPECT_NE(run_mistakes("  - {run: x, netwrk: true}\n").find("did you mean `network`?"),
            std::string::npos);
  EXPECT_NE(run_mistakes("  - {run: x, secrets: [../a]}\n").find("`../a` is no name of a secret"),
            std::string::npos);
}

TEST(RecipeRun, IsInTheLockSinceRevisionTwo) {
  Lock lock;
  lock.request.base = "debian:bookworm";
  lock.distribution = "debian";
  lock.suite = "bookworm";
  lock.settings.name = "a";
  lock.settings.workdir = "/workspace";
  EXPECT_EQ(least_revision(lock), 1);
  lock.settings.run = {{{"one\n\"two\"\t\\", 3, 4}, true, {"netrc"}}, {{"make"}, false, {}}};
  lock.revision = least_revision(lock);
  EXPECT_EQ(lock.revision, 2);
  const std::string text = render_lock(lock);
  EXPECT_NE(text.find("  { command = \"make\" },\n"), std::string::npos) << text;
  EXPECT_NE(text.find("network = true, secrets = [\"netrc\"] },\n"), std::string::npos) << text;
  const Lock again = parse_lock(text, "recipe.lock");
  EXPECT_EQ(again, lock);
  EXPECT_EQ(render_lock(again), text);
}

TEST(RecipeRun, DifferencesAreToldStepByStep) {
  Lock from;
  from.settings.run = {{{"make"}, false, {}}};
  Lock to = from;
  to.settings.run[0].network = true;
  to.settings.run.push_back({{"a\nb"}, false, {"s"}});
  EXPECT_EQ(lock_differences(from, to),
            (std::vector<std::string>{"run step 1: make → make, with network",
                                      "run step 2: none → a\\nb, with secrets s"}));
}

}  // namespace
}  // namespace mlenv
