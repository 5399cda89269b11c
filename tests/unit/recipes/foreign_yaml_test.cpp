// Anchors and aliases in other tools' YAML.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "recipes/yaml.hpp"

namespace mlenv {
namespace {

const YamlNode& member(const YamlNode& map, std::string_view key) {
  for (const YamlMember& one : map.members) {
    if (one.key.text == key) return one.value;
  }
  static const YamlNode none;
  return none;
}

std::string mistake_of(const std::string& text) {
  const YamlDocument read = parse_foreign_yaml(text);
  return read.mistakes.empty() ? "" : read.mistakes.front().message;
}

TEST(ForeignYaml, AnAliasIsWhatItNames) {
  const YamlDocument read = parse_foreign_yaml(
      "python: &py \"3.9\"\nshared: &list [a, b]\nfirst: *list\nsecond:\n- *py\n- c\n");
  ASSERT_TRUE(read.complete);
  EXPECT_TRUE(read.mistakes.empty());
  ASSERT_EQ(member(read.root, "first").items.size(), 2U);
  EXPECT_EQ(member(read.root, "first").items[1].text, "b");
  EXPECT_EQ(member(read.root, "first").line, 3);
  EXPECT_EQ(member(read.root, "second").items[0].text, "3.9");
  // In a recipe they stay mistakes.
  EXPECT_EQ(parse_yaml("a: &x 1\nb: *x\n").mistakes.size(), 2U);
}

TEST(ForeignYaml, MergedMembersGoBehindTheMapsOwn) {
  const YamlDocument read = parse_foreign_yaml(
      "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\none:\n  b: 0\n  <<: *base\n"
      "two:\n  <<: [*more, *base]\n\"<<\": kept\n");
  ASSERT_TRUE(read.mistakes.empty());
  EXPECT_EQ(member(member(read.root, "one"), "a").text, "1");
  EXPECT_EQ(member(member(read.root, "one"), "b").text, "0");
  EXPECT_EQ(member(member(read.root, "two"), "b").text, "3");
  EXPECT_EQ(member(member(read.root, "two"), "a").text, "1");
  EXPECT_EQ(member(read.root, "<<").text, "kept");
}

TEST(ForeignYaml, AliasesCannotMakeAFileLarge) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    text +=
        fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  EXPECT_NE(mistake_of(text).find("more of the file than can be read"), std::string::npos);
  std::string deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 40; ++i) deep += fmt::format("a{0}: &a{0} [*a{1}]\n", i, i - 1);
  EXPECT_NE(mistake_of(deep).find("more of the file than can be read"), std::string::npos);
  EXPECT_NE(mistake_of("a: &a [1, *a]\n"), "");
  EXPECT_NE(mistake_of("a: *unknown\n"), "");
}

}  // namespace
}  // namespace mlenv
