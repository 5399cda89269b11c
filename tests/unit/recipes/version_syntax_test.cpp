#include "recipes/version_syntax.hpp"

#include <gtest/gtest.h>

#include "recipes/requirement.hpp"

namespace mlenv {
namespace {

TEST(VersionSyntax, TakesWhatPep440Takes) {
  for (const std::string_view text :
       {"1", "1.0", "2021.1.19", "1!2.0", "1.0a1", "1.0.alpha-1", "1.0rc", "1.0-1", "1.0.post2",
        "1.0rev3", "1.0.dev0", "1.0rc1.post2.dev3+cu118.ubuntu-1", "v1.0", "1.0C1", "1.0+ABC"}) {
    EXPECT_TRUE(is_version(text)) << text;
  }
}

TEST(VersionSyntax, RefusesTheRest) {
  for (const std::string_view text : {"", "a", "1.1.1q", "1.0.", "1..0", "1.0+", "1.0+a..b", "1.0-",
                                      "1.0!", "!1", "1.0foo", "1.0.*", "h1234"}) {
    EXPECT_FALSE(is_version(text)) << text;
  }
}

TEST(VersionSyntax, OperatorsSayWhatGoesWithThem) {
  EXPECT_EQ(version_mistake("==", "1.2.*"), "");
  EXPECT_EQ(version_mistake("===", "whatever"), "");
  EXPECT_EQ(version_mistake(">=", "1.2.*"), "`.*` goes with `==` and `!=` alone");
  EXPECT_EQ(version_mistake("~=", "1"), "`~=` wants two numbers at least, as in `~=1.0`");
}

TEST(VersionSyntax, ARequirementIsRefusedAtItsVersion) {
  const auto read = parse_requirement("openssl ==1.1.1q.*");
  const auto* mistake = std::get_if<RequirementMistake>(&read);
  ASSERT_NE(mistake, nullptr);
  EXPECT_EQ(mistake->offset, 10U);
  EXPECT_EQ(mistake->message, "`1.1.1q.*` is not a version of a Python package (PEP 440)");
}

}  // namespace
}  // namespace mlenv
