#include "recipes/init/poetry_versions.hpp"

#include <gtest/gtest.h>

#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

TEST(PoetryVersions, CaretsAndTildesAreRanges) {
  const std::vector<std::pair<const char*, const char*>> expected = {
      {"^1.2", ">=1.2,<2"},
      {"^0.6.1", ">=0.6.1,<0.7"},
      {"^0.0.3", ">=0.0.3,<0.0.4"},
      {"^0", ">=0,<1"},
      {"^2.0.0rc1", ">=2.0.0rc1,<3"},
      {"^1.13.1+cpu", ">=1.13.1+cpu,<2"},
      {"~3.10", ">=3.10,<3.11"},
      {"~1", ">=1,<2"},
      {"~=1.2", "~=1.2"},
      {"1.2.*", "==1.2.*"},
      {"2.6.3", "==2.6.3"},
      {"=2.6.3", "==2.6.3"},
      {"*", ""},
      {"", ""},
      {">= 3.8, < 4", ">=3.8,<4"},
      {">=3.8 <4", ">=3.8,<4"},
      {"^3.8,!=3.9.7", ">=3.8,<4,!=3.9.7"}};
  for (const auto& [poetry, pep440] : expected) EXPECT_EQ(poetry_specifier(poetry), pep440);
  EXPECT_EQ(poetry_specifier("latest!"), std::nullopt);
  EXPECT_EQ(poetry_specifier("^"), std::nullopt);
}

TEST(PoetryVersions, AlternativesBecomeOneSetWhereTheyTouch) {
  EXPECT_EQ(poetry_specifier(">=3.8,<3.9.7 || >3.9.7,<4.0"), ">=3.8,!=3.9.7,<4.0");
  EXPECT_EQ(poetry_specifier("^1.0 || ^2.0"), ">=1.0,<3");
  EXPECT_EQ(poetry_specifier("^1.0 || ^3.0"), std::nullopt);
  EXPECT_EQ(poetry_alternatives("^1.0 || ^3.0"), (Strings{">=1.0,<2", ">=3.0,<4"}));
  EXPECT_EQ(poetry_alternatives("~2.7 | ^3.8"), (Strings{">=2.7,<2.8", ">=3.8,<4"}));
  EXPECT_EQ(poetry_alternatives("^1.0 || what?"), Strings{});
}

TEST(PoetryVersions, PythonsAreMarkers) {
  EXPECT_EQ(marker_of_poetry_python("~3.10"),
            "python_version >= \"3.10\" and python_version < \"3.11\"");
  EXPECT_EQ(marker_of_poetry_python("<3.8 || >=3.11.2"),
            "(python_version < \"3.8\") or (python_full_version >= \"3.11.2\")");
  EXPECT_EQ(marker_of_poetry_python("*"), "");
}

}  // namespace
}  // namespace mlenv
