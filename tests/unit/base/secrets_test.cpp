#include "base/secrets.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(SameSecret, TellsWhetherBothAreTheSame) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "xbc"));
  EXPECT_FALSE(same_secret("abc", "ab"));
  EXPECT_FALSE(same_secret("abc", ""));
}

}  // namespace
}  // namespace mlenv
