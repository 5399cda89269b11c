#include "runner/local/env_file.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

TEST(EnvFile, ValuesStandAsTheyAre) {
  EXPECT_EQ(
      parse_env_file("\xef\xbb\xbf# a comment\n\n  A=1\r\nB=\"two words\" # here\nC=\nHOST\n", "f"),
      (Strings{"A=1", "B=\"two words\" # here", "C=", "HOST"}));
  EXPECT_TRUE(parse_env_file("", "f").empty());
}

TEST(EnvFile, EachMistakeHasItsLine) {
  using namespace std::string_literals;
  try {
    (void)parse_env_file("A=1\n=x\nexport B=2\nC D=3\nE=\xff\nF=\0\n"s, "settings.env");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "bad-env-file");
    EXPECT_EQ(error.frames().front(),
              "settings.env:2: there is no name before the `=`\n"
              "settings.env:3: no `export` here: write `NAME=VALUE`\n"
              "settings.env:4: there is a blank in the name `C D`\n"
              "settings.env:5: it is not UTF-8 text\n"
              "settings.env:6: there is a NUL byte in it");
  }
}

}  // namespace
}  // namespace mlenv
