#include "recipes/resolve/direct_search.hpp"

#include <gtest/gtest.h>

#include "recipes/resolve/direct_wheels.hpp"
#include "recipes/resolve/uv.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

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
    if (wanted.address.kind == PackageAddress::Kind::url) made.source.url = wanted.address.place;
    made.metadata = {wanted.name, "1", dependencies[wanted.name], {}, {}};
    return made;
  }
  DirectSearch search(const std::string& packages, const Strings& constraints = {}) {
    recipe = parse_recipe("name: a\nbase: debian:bookworm\npackages: " + packages + "\n", "r.yaml");
    const auto file = std::make_shared<const RequirementsText>();
    for (const std::string& text : constraints) {
      recipe.listed.constraints.push_back({text, file, 1, 1});
    }
    return {recipe, {"3.11.2", "x86_64"}, [this](const auto& one) { return build(one); }};
  }

  static WheelResolution resolution_of(const std::string& name) {
    WheelResolution resolution;
    resolution.wheels = {{name, "1", name + "-1-py3-none-any.whl", 1, Digest::of("")}};
    return resolution;
  }

  Recipe recipe;
  std::map<std::string, Strings> dependencies;
  Strings asked;
};

TEST_F(DirectSearchTest, FollowsWhatTheWheelsAskForWithTheirExtras) {
  dependencies["a"] = {"b @ https://h.example/b-1-py3-none-any.whl ; extra == 'fast'",
                       "c @ git+https://h.example/c ; extra == 'slow'", "six",
                       "d @ https://h.example/d-1.tar.gz ; python_version < '3'"};
  dependencies["b"] = {"a[slow]"};
  auto found = search("[\"a[fast] @ ./a\"]");
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked, (Strings{"a @ ./a", "b @ https://h.example/b-1-py3-none-any.whl",
                            "c @ git+https://h.example/c"}));
  UvQuestion question;
  question.requirements = {"a[fast] @ ./a", "six"};
  name_wheels(found.built(), question);
  EXPECT_EQ(question.requirements,
            (Strings{"a[fast] @ file:///wheels/a-1-py3-none-any.whl", "six"}));
  ASSERT_EQ(question.known.size(), 1);
  EXPECT_EQ(question.known[0].requires_dist,
            (Strings{"b @ file:///wheels/b-1-py3-none-any.whl ; extra == 'fast'",
                     "c @ file:///wheels/c-1-py3-none-any.whl ; extra == 'slow'", "six"}));
  EXPECT_EQ(question.constraints, (Strings{"b @ file:///wheels/b-1-py3-none-any.whl",
                                           "c @ file:///wheels/c-1-py3-none-any.whl"}));
}

TEST_F(DirectSearchTest, TakesAConstraintWhenItsPackageIsNeeded) {
  auto found = search("[\"a @ ./a\"]", {"b @ ./b", "c @ ./c", "d @ ./d ; os_name == 'nt'"});
  dependencies["a"] = {"b"};
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked, (Strings{"a @ ./a", "b @ ./b"}));
  EXPECT_FALSE(found.needs_more(resolution_of("six")));
  EXPECT_TRUE(found.needs_more(resolution_of("c")));
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked.back(), "c @ ./c");
  EXPECT_FALSE(found.needs_more(Conflict{}));
  UvQuestion question;
  question.constraints = {"b @ ./b", "d @ ./d ; os_name == 'nt'", "six<2"};
  name_wheels(found.built(), question);
  EXPECT_EQ(question.constraints, (Strings{"b @ file:///wheels/b-1-py3-none-any.whl", "six<2"}));
}

TEST_F(DirectSearchTest, ANoMayComeOfAConstraintThatWasPutOff) {
  auto found = search("[a]", {"b @ ./b", "c @ ./c"});
  EXPECT_FALSE(found.build_needed());
  EXPECT_TRUE(asked.empty());
  Conflict conflict;
  conflict.absent = "c";
  EXPECT_TRUE(found.needs_more(conflict));
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked, Strings{"c @ ./c"});
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
  ASSERT_EQ(question.known.size(), 1);
  EXPECT_EQ(question.known[0].requires_dist,
            Strings{"b[x] @ file:///wheels/b-1-py3-none-any.whl ; python_version >= '3'"});
  dependencies["a"] = {"c @ git+file:///home/author/c@main"};
  auto repository = search("[\"a @ ./a\"]");
  const auto refused = repository.build_needed();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->facts.back(),
            "that repository is on its author's machine, and no other one has it");
}

TEST_F(DirectSearchTest, OfTwoAddressesTheRecipeHasToChoose) {
  dependencies["a"] = {"c @ https://h.example/c-1-py3-none-any.whl"};
  dependencies["b"] = {"c @ https://h.example/c-2-py3-none-any.whl"};
  auto found = search("[\"a @ ./a\", \"b @ ./b\"]");
  const auto conflict = found.build_needed();
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->headline, "`c` is asked for at two addresses");
  ASSERT_EQ(conflict->facts.size(), 2);
  EXPECT_TRUE(conflict->facts[0].starts_with(
      "r.yaml:3:12: `a` asks for `c @ https://h.example/c-1-py3-none-any.whl`"))
      << conflict->facts[0];
  EXPECT_TRUE(conflict->facts[1].starts_with(
      "r.yaml:3:23: `b` asks for `c @ https://h.example/c-2-py3-none-any.whl`"))
      << conflict->facts[1];
  auto chosen = search("[\"a @ ./a\", \"b @ ./b\", \"c @ ./c\"]");
  EXPECT_FALSE(chosen.build_needed());
  EXPECT_EQ(asked.back(), "c @ ./c");
  dependencies["b"] = dependencies["a"];
  EXPECT_FALSE(search("[\"a @ ./a\", \"b @ ./b\"]").build_needed());
}

TEST_F(DirectSearchTest, AnExtraThatAnIndexesPackageAsksForIsFollowed) {
  dependencies["a"] = {"b @ https://h.example/b-1-py3-none-any.whl ; extra == 'fast'", "six"};
  auto found = search("[\"a @ ./a\", p]");
  EXPECT_FALSE(found.build_needed());
  UvQuestion question;
  EXPECT_TRUE(name_wheels(found.built(), question));
  ASSERT_EQ(question.known.size(), 1);
  EXPECT_EQ(question.known[0].requires_dist, Strings{"six"});
  WheelResolution resolution = resolution_of("p");
  resolution.extras = {{"a", {"fast"}}, {"p", {"other"}}};
  EXPECT_TRUE(found.needs_more(resolution));
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked.back(), "b @ https://h.example/b-1-py3-none-any.whl");
  EXPECT_FALSE(found.needs_more(resolution));
  UvQuestion again;
  EXPECT_FALSE(name_wheels(found.built(), again));
}

TEST_F(DirectSearchTest, AConflictNeedsTheConstraintsThatItSpeaksOf) {
  auto found = search("[a]", {"b @ ./b", "c @ ./c"});
  EXPECT_FALSE(found.build_needed());
  Conflict conflict;
  conflict.told = "Because a depends on bb and x<1, we can conclude …";
  EXPECT_FALSE(found.needs_more(conflict));
  conflict.told = "Because only c<1 is available and a depends on c>=1, we can conclude …";
  EXPECT_TRUE(found.needs_more(conflict));
  EXPECT_FALSE(found.build_needed());
  EXPECT_EQ(asked, Strings{"c @ ./c"});
}

TEST_F(DirectSearchTest, AConflictTellsWhereItsPackagesAreFrom) {
  dependencies["a"] = {"b @ https://h.example/b-1-py3-none-any.whl"};
  auto found = search("[\"a @ ./a\", \"b==2\"]");
  EXPECT_FALSE(found.build_needed());
  Conflict conflict;
  conflict.facts = {"there is no version of b==2 and you require b==2"};
  EXPECT_EQ(
      direct_facts(found.built(), conflict),
      Strings{"`b` is 1, from `https://h.example/b-1-py3-none-any.whl`, where `a` asks for it"});
}

}  // namespace
}  // namespace mlenv
