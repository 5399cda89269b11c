#include "builder/base_folders.hpp"

#include <gtest/gtest.h>

#include "tests/support/random_image.hpp"

namespace mlenv {
namespace {

TEST(BaseFolders, UpperLayersReplaceAndHide) {
  const TemporaryFolder folder{temporary_root()};
  Store store{folder.path() / "store"};
  const Layer lower = put_layer(
      store,
      test_tar({test_folder("srv", 0700), test_folder("srv/in"), test_folder("tmp", 01777),
                test_folder("opt"), test_folder("opt/a"), test_folder("etc"), test_folder("lib")}),
      "lower");
  const Layer upper =
      put_layer(store,
                test_tar({test_folder("srv", 0750), test_file(".wh.tmp", ""),
                          test_file("opt/.wh..wh..opq", ""), test_folder("opt/b"),
                          test_file("etc", "no folder any more"), test_symlink("lib", "usr/lib")}),
                "upper");
  for (int round = 0; round < 2; ++round) {  // read, then remembered
    const BaseFolders folders = base_folders(store, {lower, upper});
    EXPECT_EQ(folders.at("srv").mode, 0750U);
    EXPECT_TRUE(folders.contains("srv/in"));
    EXPECT_FALSE(folders.contains("tmp"));
    EXPECT_FALSE(folders.contains("opt/a"));
    EXPECT_TRUE(folders.contains("opt/b"));
    EXPECT_FALSE(folders.contains("etc"));
    EXPECT_EQ(folders.at("lib").link, "usr/lib");
  }
  EXPECT_EQ(base_folders(store, {lower}).at("srv").mode, 0700U);
}

}  // namespace
}  // namespace mlenv
