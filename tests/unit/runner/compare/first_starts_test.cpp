#include "runner/compare/first_starts.hpp"

#include <gtest/gtest.h>

#include "tests/unit/runner/compare/some_comparison.hpp"

namespace mlenv::compare {
namespace {

std::vector<double> cell_values(const Cell& cell) {
  std::vector<double> all;
  for (const Sample& one : cell.samples) all.push_back(one.value);
  return all;
}

TEST(CompareFirstStarts, OthersTakeTheirPlaceOnEachSideByItself) {
  FirstStarts first;
  Cell bare = cell_of("bare", {});
  Cell builtin = cell_of("builtin", {});
  first.add("start.user", bare, 9, true);
  first.add("start.user", builtin, 8, true);
  EXPECT_TRUE(first.are_all_of("start.user", bare));
  first.add("start.user", bare, 1, false);
  first.add("start.user", bare, 2, false);
  EXPECT_EQ(cell_values(bare), (std::vector<double>{1, 2}));
  EXPECT_FALSE(first.are_all_of("start.user", bare));
  EXPECT_EQ(cell_values(builtin), std::vector<double>{8}) << "its later starts failed";
  EXPECT_TRUE(first.are_all_of("start.user", builtin));
}

TEST(CompareFirstStarts, AndOfEachRow) {
  FirstStarts first;
  Cell wall = cell_of("bare", {});
  Cell memory = cell_of("bare", {});
  first.add("command.wall", wall, 9, true);
  first.add("command.wall", wall, 1, false);
  first.add("command.memory", memory, 2, false);  // which the first start did not give
  EXPECT_EQ(cell_values(memory), std::vector<double>{2});
  EXPECT_FALSE(first.are_all_of("command.memory", memory));
  EXPECT_EQ(cell_values(wall), std::vector<double>{1});
}

}  // namespace
}  // namespace mlenv::compare
