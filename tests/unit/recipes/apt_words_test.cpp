#include "recipes/apt_words.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

using AptNames = std::vector<std::string>;

TEST(AptWords, NamesBehindInstall) {
  EXPECT_EQ(packages_of_apt_words("sudo apt-get install libfoo-dev"), (AptNames{"libfoo-dev"}));
  EXPECT_EQ(packages_of_apt_words("apt-get -qq -y install --no-install-recommends a1 g++"),
            (AptNames{"a1", "g++"}));
  EXPECT_EQ(packages_of_apt_words("(Debian: `apt install libfoo1`, Fedora: `dnf install foo`)"),
            (AptNames{"libfoo1"}));
  EXPECT_EQ(packages_of_apt_words("$ apt-get install \\\n    libfoo-dev \\\n    libbar-dev\n"),
            (AptNames{"libfoo-dev", "libbar-dev"}));
  EXPECT_EQ(packages_of_apt_words("sudo aptitude install libfoo2.0-dev libfoo2.0-dev"),
            (AptNames{"libfoo2.0-dev"}));
}

TEST(AptWords, ASentenceEndsThem) {
  EXPECT_EQ(packages_of_apt_words("run apt-get install libfoo-dev on Debian"),
            (AptNames{"libfoo-dev"}));
  EXPECT_EQ(packages_of_apt_words("apt install libfoo-dev, or brew install foo"),
            (AptNames{"libfoo-dev"}));
  EXPECT_EQ(packages_of_apt_words("apt install libfoo-dev. Then try again"),
            (AptNames{"libfoo-dev"}));
  EXPECT_EQ(packages_of_apt_words("apt install libfoo-dev && make"), (AptNames{"libfoo-dev"}));
  EXPECT_EQ(packages_of_apt_words("apt-get install libfoo-dev\nerror: failed"),
            (AptNames{"libfoo-dev"}));
}

TEST(AptWords, OtherNamesToday) {
  EXPECT_EQ(packages_of_apt_words("apt-get install python-dev libmysqlclient-dev"),
            (AptNames{"python3-dev", "default-libmysqlclient-dev"}));
  EXPECT_EQ(packages_of_apt_words("apt install python3.8-dev"), (AptNames{"python3-dev"}));
  EXPECT_EQ(packages_of_apt_words("apt install libfoo-dev:amd64"), (AptNames{"libfoo-dev"}));
}

TEST(AptWords, NoPackages) {
  for (const char* text :
       {"", "apt-get update", "apt install", "apt install <package>", "apt-get install PKG",
        "apt-get install the package", "an apt install", "adapt install libfoo",
        "apt-get installs x", "apt-get install cuda-toolkit-12-4", "pip install libfoo"}) {
    EXPECT_EQ(packages_of_apt_words(text), AptNames{}) << text;
  }
}

TEST(AptWords, TheLastThatNamesSome) {
  EXPECT_EQ(packages_of_apt_words("apt install libold1\n…\napt-get install libnew1\napt install"),
            (AptNames{"libnew1"}));
}

}  // namespace
}  // namespace mlenv
