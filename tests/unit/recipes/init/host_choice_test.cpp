#include "recipes/init/host_choice.hpp"

#include <gtest/gtest.h>

#include "recipes/distribution.hpp"
#include "recipes/recipe.hpp"

namespace mlenv {
namespace {

Draft chosen(const std::string& framework, const std::string& driver,
             const std::string& base = "debian:bookworm") {
  Draft draft;
  draft.name = "x";
  draft.framework = framework;
  choose_for_host(draft, {base, driver});
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
  EXPECT_EQ(chosen("jax", "", "debian:trixie").base, "debian:trixie");
  EXPECT_EQ(chosen("jax", "", "debian:trixie").python, "3.13");
  EXPECT_EQ(chosen("jax", "", "ubuntu:jammy").base, "ubuntu:jammy");
  EXPECT_EQ(chosen("jax", "", "ubuntu:jammy").python, "3.10");
  EXPECT_EQ(chosen("jax", "", "").base, "debian:bookworm");
  EXPECT_EQ(chosen("jax", "", "debian:sid").base, "debian:bookworm")
      << "whose Python nobody knows tomorrow";
  EXPECT_EQ(chosen("", "", "debian:trixie").python, "") << "nothing needs it";
  Draft draft;
  draft.name = "x";
  draft.python = "3.11";
  choose_for_host(draft, {"debian:trixie", ""});
  EXPECT_EQ(draft.base, "debian:bookworm");
  draft = {};
  draft.python = "3.12";
  choose_for_host(draft, {"debian:trixie", ""});
  EXPECT_EQ(draft.base, "ubuntu:noble");
  EXPECT_EQ(draft.base_note, "No release of Debian has Python 3.12; this one of Ubuntu does.");
  draft = {};
  draft.python = "3.12";
  choose_for_host(draft, {"debian:trixie", "", true});
  EXPECT_EQ(draft.base, "debian:trixie") << "the mirror has it";
  draft = {};
  draft.python = "3.9";
  choose_for_host(draft, {"debian:trixie", "", true});
  EXPECT_EQ(draft.base, "debian:bullseye");
}

TEST(HostChoice, KnowsReleasesByNameNumberAndPython) {
  EXPECT_EQ(base_of_number("debian", "12.5"), "debian:bookworm");
  EXPECT_EQ(base_of_number("ubuntu", "24.04"), "ubuntu:noble");
  EXPECT_EQ(base_of_number("ubuntu", "24.04.1"), "ubuntu:noble");
  EXPECT_EQ(base_of_number("ubuntu", "24"), "");
  EXPECT_EQ(base_of_number("debian", ""), "");
  EXPECT_EQ(base_of_suite("debian", "sid"), "debian:sid");
  EXPECT_EQ(base_of_suite("debian", "jammy"), "");
  EXPECT_EQ(base_of_suite("fedora", "40"), "");
  EXPECT_EQ(python_of_base("ubuntu:noble"), "3.12");
  EXPECT_EQ(python_of_base("debian:sid"), "");
  EXPECT_EQ(python_of_base("example.com/debian:12"), "");
  EXPECT_EQ(base_with_python("3.9"), "debian:bullseye");
  EXPECT_EQ(base_with_python("3.13"), "debian:trixie");
  EXPECT_EQ(base_with_python("3.10"), "ubuntu:jammy");
  EXPECT_EQ(base_with_python("3.7"), "");
  EXPECT_EQ(base_with_python(""), "");
}

}  // namespace
}  // namespace mlenv
