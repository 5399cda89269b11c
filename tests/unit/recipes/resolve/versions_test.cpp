#include "recipes/resolve/versions.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(Versions, LocalPartsCompareNumbersAsNumbers) {
  // Ascending (PEP 440, "Local version identifiers").
  const std::vector<std::string_view> ordered = {"1.0",       "1.0+abc", "1.0+cu128", "1.0+cu128.1",
                                                 "1.0+cu130", "1.0+9",   "1.0+10",    "1.0+10.1"};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (std::size_t j = 0; j < ordered.size(); ++j) {
      EXPECT_EQ(compare_versions(ordered[i], ordered[j]), i <=> j)
          << ordered[i] << " and " << ordered[j];
    }
  }
  EXPECT_TRUE(is_same_version("1.0+cu_1", "1.0+cu.1"));
}

}  // namespace
}  // namespace mlenv
