#include "images/stacked_trees.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "images/unpack.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv {
namespace {

using TreeEntries = std::vector<TestEntry>;

class StackedTreesTest : public testing::Test {
 protected:
  StackedTrees stacked(const std::vector<TreeEntries>& layers) {
    std::vector<fs::path> trees;
    for (const TreeEntries& entries : layers) {
      const Layer layer = put_layer(store_, test_tar(entries), "layer");
      trees.push_back(unpack_layer(store_, layer, quiet_));
    }
    return StackedTrees{trees};
  }
  fs::path merged(const StackedTrees& trees) const {
    fs::path root = folder_.path() / "merged";
    trees.link_into(root);
    return root;
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
  QuietProgress quiet_;
};

TEST_F(StackedTreesTest, UpperLayersReplaceAndHide) {
  const StackedTrees trees =
      stacked({{test_file("a/one", "1"), test_file("a/two", "2"), test_file("b/x", "x"),
                test_file("c/old", "o"), test_file("d", "file")},
               {test_file("a/one", "upper"), test_file("a/.wh.two", ""), test_file(".wh.b", ""),
                test_folder("c"), test_file("c/.wh..wh..opq", ""), test_file("c/new", "n"),
                test_folder("d"), test_file("d/in", "i")}});
  EXPECT_EQ(trees.read("a/one", 100), "upper");
  EXPECT_EQ(trees.read("/a/two", 100), std::nullopt);
  EXPECT_EQ(trees.resolve("b"), std::nullopt);
  EXPECT_EQ(trees.read("b/x", 100), std::nullopt);
  EXPECT_EQ(trees.read("c/old", 100), std::nullopt);
  EXPECT_EQ(trees.read("d/in", 100), "i");
  EXPECT_EQ(trees.list("/"), (std::vector<std::string>{"a", "c", "d"}));
  EXPECT_EQ(trees.list("c"), (std::vector<std::string>{"new"}));

  const fs::path root = merged(trees);
  EXPECT_EQ(read_file(root / "a/one"), "upper");
  EXPECT_FALSE(fs::exists(root / "a/two"));
  EXPECT_FALSE(fs::exists(root / "b"));
  EXPECT_FALSE(fs::exists(root / "c/old"));
  EXPECT_EQ(read_file(root / "c/new"), "n");
  EXPECT_EQ(read_file(root / "d/in"), "i");
}

TEST_F(StackedTreesTest, LinksAreFollowedWithinTheImageAlone) {
  const fs::path secret = folder_.path() / "secret";
  write_file(secret, "host");
  const StackedTrees trees = stacked(
      {{test_symlink("usr/bin/python3", "python3.11"), test_file("usr/bin/python3.11", "p", 0755),
        test_symlink("bin", "usr/bin"), test_symlink("loop", "loop"),
        test_symlink("out", secret.string()), test_symlink("up", "../../../usr"),
        test_symlink("hidden", folder_.path().string())},
       {test_folder("hidden"), test_file("hidden/own", "o")}});
  EXPECT_EQ(trees.resolve("/bin/python3"), "usr/bin/python3.11");
  EXPECT_TRUE(trees.is_program("/bin/python3"));
  EXPECT_FALSE(trees.is_program("/bin"));
  EXPECT_EQ(trees.resolve("up/bin/python3.11"), "usr/bin/python3.11");
  EXPECT_EQ(trees.resolve("loop"), std::nullopt);
  EXPECT_EQ(trees.read("out", 100), std::nullopt);
  // The lower layer's link is no way to the host either.
  EXPECT_EQ(trees.read("hidden/secret", 100), std::nullopt);
  EXPECT_EQ(trees.list("hidden"), (std::vector<std::string>{"own"}));
  EXPECT_EQ(trees.read("hidden/own", 100), "o");
}

TEST_F(StackedTreesTest, LongFilesAreRefused) {
  const StackedTrees trees = stacked({{test_file("big", std::string(100, 'x'))}});
  EXPECT_EQ(trees.read("big", 100).value_or("").size(), 100U);
  EXPECT_THROW(trees.read("big", 99), Error);
}

}  // namespace
}  // namespace mlenv
