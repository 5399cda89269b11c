#include "recipes/resolve/python_build.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

std::string one(const std::string& version, const std::string& rest) {
  return R"({"implementation": "cpython", "libc": "gnu", "variant": "default", "version": ")" +
         version + R"(", "url": "https://h/)" + version + "\"" + rest + "}";
}

TEST(PythonBuild, TheNewestOfItsMinorIsTaken) {
  const std::string list = "[" + one("3.12.9", "") + "," + one("3.12.16", "") + "," +
                           one("3.13.1", "") + "," + one("3.1.9", "") + "]";
  const auto found = python_build_in(list, "3.12");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version, "3.12.16");
  EXPECT_EQ(found->url, "https://h/3.12.16");
  EXPECT_EQ(python_build_in(list, "3.1")->version, "3.1.9");
  EXPECT_FALSE(python_build_in(list, "3.11"));
  EXPECT_FALSE(python_build_in("[]", "3.12"));
}

TEST(PythonBuild, OtherImplementationsAndVariantsAreNot) {
  const std::string others = "[" + one("3.14.1", R"(, "variant": "freethreaded")") + "," +
                             one("3.14.2", R"(, "implementation": "pypy")") + "," +
                             one("3.14.3", R"(, "libc": "musl")") + "," +
                             one("3.14.4", R"(, "url": null)") + ", 7]";
  EXPECT_FALSE(python_build_in(others, "3.14"));
}

TEST(PythonBuild, AnAnswerThatIsNoListIsAFailureOfUvs) {
  for (const char* answer : {"", "{}", "not JSON"}) {
    try {
      python_build_in(answer, "3.12");
      FAIL() << answer;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "uv-failed");
    }
  }
}

TEST(PythonBuild, ALocksFileSaysWhereItLies) {
  const std::string file =
      "cpython-3.12.8+20241219-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz";
  EXPECT_EQ(python_build_url(file, "http://127.0.0.1:8080/mirror//"),
            "http://127.0.0.1:8080/mirror/20241219/"
            "cpython-3.12.8%2B20241219-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz");
  EXPECT_EQ(python_build_url(file, "").substr(0, 8), "https://");
  EXPECT_EQ(python_build_url("python-3.12.tar.gz", ""), "");
  EXPECT_EQ(python_build_url("cpython-3.12.8+../../x-y.tar.gz", ""), "");
}

}  // namespace
}  // namespace mlenv
