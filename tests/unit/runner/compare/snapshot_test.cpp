#include "runner/compare/snapshot.hpp"

#include <gtest/gtest.h>

namespace mlenv::compare {
namespace {

TEST(CompareSnapshot, ImagesOfOtherStoresAreNotOurs) {
  const std::string label = snapshots_label("/a/store");
  EXPECT_EQ(label, snapshots_label("/a/store"));
  EXPECT_NE(label, snapshots_label("/another/store"));
  EXPECT_TRUE(label.starts_with("dev.mlenv.compare=")) << label;
}

}  // namespace
}  // namespace mlenv::compare
