#include "recipes/text.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(Text, CountsEdits) {
  EXPECT_EQ(edit_distance("", "", 2), 0U);
  EXPECT_EQ(edit_distance("torch", "torch", 0), 0U);
  EXPECT_EQ(edit_distance("torch", "torhc", 2), 1U);  // neighbours swapped
  EXPECT_EQ(edit_distance("torch", "tarch", 2), 1U);
  EXPECT_EQ(edit_distance("torch", "orchs", 2), 2U);
  EXPECT_EQ(edit_distance("", "ab", 2), 2U);
  // Not the unrestricted distance, which is 2: a swapped pair is not edited again.
  EXPECT_EQ(edit_distance("ca", "abc", 4), 3U);
}

TEST(Text, CountsEditsUpToALimit) {
  EXPECT_EQ(edit_distance("abcdefgh", "hgfedcba", 2), 3U);
  EXPECT_EQ(edit_distance("a", "abcdefgh", 2), 3U);
  EXPECT_EQ(edit_distance("abcd", "wxyz", 4), 4U);
  EXPECT_EQ(edit_distance("abcd", "wxyz", 3), 4U);
  EXPECT_EQ(edit_distance("badc", "abcd", 1), 2U);
  EXPECT_EQ(edit_distance("badc", "abcd", 2), 2U);
}

}  // namespace
}  // namespace mlenv
