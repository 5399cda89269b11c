#include "recipes/resolve/listed_python.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

class ListedPythonTest : public testing::Test {
 protected:
  std::string said(const std::string& wanted, const std::string& rest = {}) {
    const auto file = std::make_shared<const RequirementsText>(
        RequirementsText{"pyproject.toml", "requires-python = \"" + wanted + "\"\n"});
    Recipe recipe = parse_recipe("name: a\n" + (rest.empty() ? "base: debian:bookworm\n" : rest),
                                 "recipe.yaml");
    recipe.listed.pythons = {{wanted, file, 1, 1}};
    const auto conflict = listed_python_conflict(recipe, lock_);
    return conflict ? conflict->headline + "\n" + conflict->hint : "";
  }
  ListedPythonTest() { lock_.python = "3.11.2"; }
  Lock lock_;
};

TEST_F(ListedPythonTest, NamesReleasesOfTheBasesDistribution) {
  EXPECT_EQ(said(">=3.10"), "");
  EXPECT_EQ(said(">=3.12"),
            "`base: debian:bookworm` has Python 3.11.2, `pyproject.toml` wants >=3.12\n"
            "write `base: debian:trixie`, write `python: \"3.12\"`, or loosen `requires-python`");
  EXPECT_EQ(said(">=3.14"),
            "`base: debian:bookworm` has Python 3.11.2, `pyproject.toml` wants >=3.14\n"
            "write `python: \"3.14\"`, or loosen `requires-python`");
  EXPECT_EQ(said("<3.8"),
            "`base: debian:bookworm` has Python 3.11.2, `pyproject.toml` wants <3.8\n"
            "bring a Python along with `sources: {python: {url: …, sha256: …}}`, or loosen "
            "`requires-python`");
}

TEST_F(ListedPythonTest, ABuildOfUvsIsTheRecipesChoice) {
  lock_.interpreter = LockedPython{"3.11.9", "cpython-3.11.9+20240814.tar.gz", 1, Digest::of("")};
  EXPECT_EQ(said(">=3.13", "base: debian:bullseye\npython: \"3.11\"\n"),
            "`python: 3.11` is Python 3.11.2, `pyproject.toml` wants >=3.13\n"
            "write `base: debian:trixie`, write `python: \"3.13\"`, or loosen `requires-python`");
}

TEST_F(ListedPythonTest, AnImageIsNoDistribution) {
  EXPECT_EQ(said(">=3.12", "base: example.com/a:1\n"),
            "`base: example.com/a:1` has Python 3.11.2, `pyproject.toml` wants >=3.12\n"
            "choose an image with such a Python, or loosen `requires-python`");
}

TEST_F(ListedPythonTest, AnOwnPythonIsNotTheBases) {
  lock_.interpreter = LockedPython{"3.11.2", "python.tar.zst", 1, Digest::of("")};
  const std::string own =
      "base: debian:bookworm\nsources: {python: {url: \"https://h/python.tar.zst\", sha256: " +
      Digest::of("").hex() + "}}\n";
  EXPECT_EQ(said(">=3.12", own),
            "the archive of `sources: {python: …}` holds Python 3.11.2, `pyproject.toml` wants "
            ">=3.12\nname the archive of such a Python there, or loosen `requires-python`");
}

}  // namespace
}  // namespace mlenv
