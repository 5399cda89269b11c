#include "base/text.hpp"

#include <gtest/gtest.h>

#include "base/paths.hpp"

namespace mlenv {
namespace {

using Parts = std::vector<std::string_view>;

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a:b", ':'), (Parts{"a", "b"}));
  EXPECT_EQ(split("", ':'), (Parts{""}));
  EXPECT_EQ(split("::", ':'), (Parts{"", "", ""}));
}

TEST(Text, OnlyAsciiIsTold) {
  EXPECT_EQ(to_lower("AbZ\xC4@["), "abz\xC4@[");
  EXPECT_TRUE(is_alphanumeric('0') && is_alphanumeric('a') && is_alphanumeric('Z'));
  for (const char c : {'/', ':', '@', '[', '`', '{', '\xE4'}) EXPECT_FALSE(is_alphanumeric(c));
  EXPECT_EQ(trim(" \t\r\na b\v \n"), "a b\v");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, CStringsEndWithNull) {
  const std::vector<std::string> words{"a", ""};
  const std::vector<char*> pointers = c_strings(words);
  ASSERT_EQ(pointers.size(), 3U);
  EXPECT_EQ(pointers[0], words[0].c_str());
  EXPECT_EQ(pointers[2], nullptr);
}

TEST(Paths, Parts) {
  EXPECT_EQ(last_part("a/b"), "b");
  EXPECT_EQ(last_part("a"), "a");
  EXPECT_EQ(last_part("a/"), "");
  EXPECT_EQ(folder_of("a/b/c"), "a/b");
  EXPECT_EQ(folder_of("a"), "");
  EXPECT_EQ(below("a", "b"), "a/b");
  EXPECT_EQ(below("", "b"), "b");
}

TEST(Paths, Beneath) {
  EXPECT_TRUE(is_beneath("/a", "/a"));
  EXPECT_TRUE(is_beneath("/a/b", "/a"));
  EXPECT_TRUE(is_beneath("/a", "/"));
  EXPECT_FALSE(is_beneath("/ab", "/a"));
  EXPECT_FALSE(is_beneath("/a", "/a/b"));
}

}  // namespace
}  // namespace mlenv
