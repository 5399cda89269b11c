#include "recipes/resolve/direct_search.hpp"

#include <gtest/gtest.h>

#include "recipes/resolve/direct_wheels.hpp"
#include "recipes/resolve/uv.hpp"

namespace mlenv {
namespace {

using Texts = std::vector<std::string>;

/// Builds without building: each package has the requirements that are told here.
class DirectSearchTest : public testing::Test {
 protected:
  std::variant<BuiltRelease, Conflict> build(const DirectRequirement& wanted) {
    asked.push_back(fmt::format("{} @ {}", wanted.name, wanted.address.str()));
    BuiltRelease made{{wanted.name, "1", wanted.name + "-1-py3-none-any.whl", 1, Digest::of("")},
                      {wanted.name, "1", {}, 0, Digest::of(""), {}},
                      {},
                      {},
                      "/wheels/" + wanted.name + "-1-py3-none-any.whl"};
    made.metadata = {wanted.name, "1", dependencies[wanted.name], {}, {}};
    return made;
  }
  DirectSearch search(const std::string& packages, const Texts& constraints = {}) {
    recipe = parse_recipe("name: a\nbase: debian:bookworm\npackages: " + packages + "\n", "r.yaml");
    const auto file = std::make_shared<const RequirementsText>();
    for (const std::string& text : constraints) {
      recipe.listed.constraints.push_back({text, file, 1, 1});
    }
    return {recipe, {"3.11.2", "x86_64"}, [this](const auto& one) { return build(one); }};
  }

  Recipe recipe;
  std::map<std::string, Texts> dependencies;
  Texts asked;
};

TEST_F(DirectSearchTest, FollowsWhatTheWheelsAskForWithTheirExtras) {
  dependencies["a"] = {"b @ https://h.example/b-1-py3-none-any.whl ; extra == 'fast'",
                       "c @ git+https://h.example/c ; extra == 'slow'", "six",
                       "d @ https://h.example/d-1.tar.gz ; python_version < '3'"};
  dependencies["b"] = {"a[slow]"};
  auto found = search("[\"a[fast] @ ./a\"]");
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked, (Texts{"a @ ./a", "b @ https://h.example/b-1-py3-none-any.whl",
                          "c @ git+https://h.example/c"}));
  UvQuestion question;
  question.requirements = {"a[fast] @ ./a", "six"};
  name_wheels(found.built(), question);
  EXPECT_EQ(question.requirements, (Texts{"a[fast] @ file:///wheels/a-1-py3-none-any.whl", "six"}));
  EXPECT_EQ(question.overrides, (Texts{"b @ file:///wheels/b-1-py3-none-any.whl",
                                       "c @ file:///wheels/c-1-py3-none-any.whl"}));
}

TEST_F(DirectSearchTest, TakesAConstraintWhenItsPackageIsNeeded) {
  auto found = search("[\"a @ ./a\"]", {"b @ ./b", "c @ ./c", "d @ ./d ; os_name == 'nt'"});
  dependencies["a"] = {"b"};
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked, (Texts{"a @ ./a", "b @ ./b"}));
  EXPECT_FALSE(found.needs_more({{"six", "1", "six-1-py3-none-any.whl", 1, Digest::of("")}}));
  EXPECT_TRUE(found.needs_more({{"c", "1", "c-1-py3-none-any.whl", 1, Digest::of("")}}));
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked.back(), "c @ ./c");
  EXPECT_FALSE(found.needs_more(Conflict{}));
  UvQuestion question;
  question.constraints = {"b @ ./b", "d @ ./d ; os_name == 'nt'", "six<2"};
  name_wheels(found.built(), question);
  EXPECT_EQ(question.constraints, (Texts{"b @ file:///wheels/b-1-py3-none-any.whl", "six<2"}));
}

TEST_F(DirectSearchTest, ANoMayComeOfAConstraintThatWasPutOff) {
  auto found = search("[a]", {"b @ ./b", "c @ ./c"});
  EXPECT_FALSE(found.build_needed());
  EXPECT_TRUE(asked.empty());
  Conflict conflict;
  conflict.absent = "c";
  EXPECT_TRUE(found.needs_more(conflict));
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked, Texts{"c @ ./c"});
  EXPECT_TRUE(found.needs_more(Conflict{}));
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked.back(), "b @ ./b");
}

TEST_F(DirectSearchTest, APathOfItsAuthorIsSaidOrReplaced) {
  dependencies["a"] = {"b[x] @ file:///home/author/b ; python_version >= '3'"};
  auto found = search("[\"a @ ./a\"]");
  const auto conflict = found.build_needed();
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->headline,
            "`a` asks for `b[x] @ file:///home/author/b ; python_version >= '3'`, which cannot be "
            "locked");
  auto replaced = search("[\"a @ ./a\", \"b @ ./b\"]");
  EXPECT_FALSE(replaced.build_needed());
  UvQuestion question;
  name_wheels(replaced.built(), question);
  EXPECT_EQ(question.overrides, Texts{"b[x] @ file:///wheels/b-1-py3-none-any.whl"});
}

}  // namespace
}  // namespace mlenv
