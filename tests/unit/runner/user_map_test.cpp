#include "runner/local/user_map.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

using Map = std::vector<IdMapLine>;
using Ranges = std::vector<IdRange>;

TEST(UserMap, RangesAreOfAUsersNameOrNumber) {
  const std::string file =
      "jo:100000:65536\n"
      "ann:200000:65536\n"
      "1000:400000:10\n"
      " jo:500000:5 \n"
      "jo:600000\njo:x:5\njo:5:-1\njo:700000:0\n1000:4294967296:1\n\n";
  EXPECT_EQ(subordinate_ranges(file, "jo", 1000),
            (Ranges{{100000, 65536}, {400000, 10}, {500000, 5}}));
  EXPECT_EQ(subordinate_ranges(file, "ann", 1001), (Ranges{{200000, 65536}}));
  EXPECT_EQ(subordinate_ranges(file, "100", 100), Ranges{});
  EXPECT_EQ(subordinate_ranges("", "jo", 1000), Ranges{});
}

TEST(UserMap, RangesOfADirectoryService) {
  EXPECT_TRUE(asks_directory("passwd: files\nsubid:   sss # of the domain\n"));
  EXPECT_FALSE(asks_directory("subid: files\n"));
  EXPECT_FALSE(asks_directory("# subid: sss\npasswd: files sss\n"));
  EXPECT_EQ(listed_ranges("0: jo 100000 65536\n1: jo 400000 10\nno ranges\n2: jo x 5\n"),
            (Ranges{{100000, 65536}, {400000, 10}}));
  EXPECT_EQ(listed_ranges(""), Ranges{});
}

TEST(UserMap, TheCallerIsShownAsAnotherAndRootIsSomebodyElse) {
  EXPECT_EQ(map_keeping(1000, 61234, {{100000, 65536}}),
            (Map{{0, 100000, 1000}, {1000, 61234, 1}, {1001, 101000, 64536}}));
  EXPECT_EQ(map_keeping(1, 61234, {{100000, 3}}),
            (Map{{0, 100000, 1}, {1, 61234, 1}, {2, 100001, 2}}));
  EXPECT_EQ(map_keeping(0, 61234, {{100000, 3}}), (Map{{0, 61234, 1}, {1, 100000, 3}}));
}

TEST(UserMap, BeyondTheRanges) {
  EXPECT_EQ(map_keeping(2000000000, 61234, {{100000, 10}}),
            (Map{{0, 100000, 10}, {2000000000, 61234, 1}}));
  EXPECT_EQ(map_keeping(10, 61234, {{100000, 10}}), (Map{{0, 100000, 10}, {10, 61234, 1}}));
}

TEST(UserMap, SeveralRangesFollowEachOther) {
  EXPECT_EQ(map_keeping(15, 61234, {{100, 10}, {500, 10}}),
            (Map{{0, 100, 10}, {10, 500, 5}, {15, 61234, 1}, {16, 505, 5}}));
  EXPECT_EQ(map_keeping(10, 61234, {{100, 10}, {500, 10}}),
            (Map{{0, 100, 10}, {10, 61234, 1}, {11, 500, 10}}));
}

}  // namespace
}  // namespace mlenv
