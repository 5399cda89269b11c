#include "builder/lay_over.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

class LayOverTest : public testing::Test {
 protected:
  fs::path put(const std::string& path, std::string_view text) const {
    fs::path whole = folder_.path() / path;
    make_folders(whole.parent_path());
    write_file(whole, text, false);
    return whole;
  }
  fs::path to() const { return folder_.path() / "to"; }
  void lay(const char* from) const { lay_over(folder_.path() / from, to()); }

  TemporaryFolder folder_{temporary_root()};
};

TEST_F(LayOverTest, TwoTreesMayHoldTheSameLinkAndFile) {
  make_folders(to());
  for (const std::string tree : {"a", "b"}) {
    put(tree + "/lib/file", "of " + tree);
    put(tree + "/only-" + tree, tree);
    fs::create_symlink("file", folder_.path() / tree / "lib/link");
    fs::create_directory_symlink("nowhere", folder_.path() / tree / "dangling");
  }
  fs::permissions(put("b/lib/program", "p"), fs::perms::owner_all);
  lay("a");
  lay("b");
  EXPECT_EQ(read_file(to() / "lib/file"), "of b");
  EXPECT_EQ(fs::read_symlink(to() / "lib/link"), "file");
  EXPECT_EQ(fs::read_symlink(to() / "dangling"), "nowhere");
  EXPECT_EQ(fs::status(to() / "lib/program").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(fs::exists(to() / "only-a"));
  EXPECT_TRUE(fs::exists(to() / "only-b"));
}

TEST_F(LayOverTest, NothingIsWrittenThroughALink) {
  const fs::path outside = put("outside", "kept");
  make_folders(to());
  fs::create_symlink(outside, to() / "file");
  put("a/file", "new");
  lay("a");
  EXPECT_EQ(read_file(outside), "kept");
  EXPECT_EQ(read_file(to() / "file"), "new");
  EXPECT_FALSE(fs::is_symlink(to() / "file"));
}

}  // namespace
}  // namespace mlenv
