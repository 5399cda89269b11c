#include "recipes/init/host_choice.hpp"

#include <gtest/gtest.h>

#include "recipes/recipe.hpp"

namespace mlenv {
namespace {

Draft chosen(const std::string& framework, const std::string& driver,
             const std::string& suite = "bookworm") {
  Draft draft;
  draft.name = "x";
  draft.framework = framework;
  choose_for_host(draft, {suite, driver});
  EXPECT_NO_THROW(parse_recipe(render_draft(draft, "recipe.yaml"), "recipe.yaml"))
      << render_draft(draft, "recipe.yaml");
  return draft;
}

TEST(HostChoice, CudaFollowsDriverAndFramework) {
  struct Case {
    const char* framework;
    const char* driver;
    const char* cuda;
  };
  for (const Case& one : {Case{"pytorch", "580.65.06", "13"}, Case{"pytorch", "575.51.03", "12"},
                          Case{"pytorch", "525.60.13", "12"}, Case{"pytorch", "470.57.02", ""},
                          Case{"pytorch", "", ""}, Case{"pytorch>=2.9", "620.70.06", "13"},
                          Case{"pytorch==2.4.0", "580.65.06", ""}, Case{"torch", "535.54.03", "12"},
                          Case{"jax", "580.65.06", "13"}, Case{"jax==0.4.38", "580.65.06", "12"},
                          Case{"jax", "", "cpu"}, Case{"jax", "470.57.02", "cpu"},
                          Case{"tensorflow", "590.44.01", "12"}, Case{"tensorflow", "", "cpu"},
                          Case{"scikit-learn", "580.65.06", ""}, Case{"", "580.65.06", ""}}) {
    EXPECT_EQ(chosen(one.framework, one.driver).cuda, one.cuda)
        << one.framework << ' ' << one.driver;
  }
  EXPECT_NE(chosen("pytorch", "470.57.02").cuda_note.find("470.57.02"), std::string::npos);
}

TEST(HostChoice, TheBaseIsTheHostsWhereItFits) {
  EXPECT_EQ(chosen("jax", "", "trixie").suite, "trixie");
  EXPECT_EQ(chosen("jax", "", "trixie").python, "3.13");
  EXPECT_EQ(chosen("jax", "", "").suite, "bookworm");
  EXPECT_EQ(chosen("jax", "", "sid").suite, "bookworm") << "whose Python nobody knows tomorrow";
  EXPECT_EQ(chosen("", "", "trixie").python, "") << "nothing needs it";
  Draft draft;
  draft.name = "x";
  draft.python = "3.11";
  choose_for_host(draft, {"trixie", ""});
  EXPECT_EQ(draft.suite, "bookworm");
}

TEST(HostChoice, KnowsDebiansReleases) {
  EXPECT_EQ(suite_of_number("12.5"), "bookworm");
  EXPECT_EQ(suite_of_number(""), "");
  EXPECT_EQ(suite_with_python("3.9"), "bullseye");
  EXPECT_EQ(suite_with_python("3.10"), "");
  EXPECT_EQ(suite_with_python(""), "");
}

}  // namespace
}  // namespace mlenv
