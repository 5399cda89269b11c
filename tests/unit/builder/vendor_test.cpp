#include "builder/vendor.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

class VendorTest : public testing::Test {
 protected:
  VendorTest() {
    Store::Staged staged = store_.stage();
    write_all(staged.fd(), as_bytes(std::string_view("six")));
    staged.commit(wheel_.digest);
    lock_.wheels = {wheel_};
  }
  fs::path vendored() {
    Inputs inputs{store_, http_, {}, folder_.path() / "cache", progress_};
    const auto files = vendor(lock_, home_, store_, inputs, progress_);
    EXPECT_EQ(files.size(), 1U);
    EXPECT_EQ(read_file(files.at(0).path), "six");
    return files.at(0).path;
  }

  TemporaryFolder folder_{temporary_root()};
  const fs::path home_ = folder_.path() / "vendor";
  Store store_{folder_.path() / "store"};
  Http http_{HttpOptions{}};
  QuietProgress progress_;
  const LockedWheel wheel_{.name = "six",
                           .version = "1",
                           .file = "six-1-py3-none-any.whl",
                           .size_bytes = 3,
                           .digest = Digest::of("six")};
  Lock lock_;
};

TEST_F(VendorTest, AFileOfThatNameIsSomebodys) {
  EXPECT_EQ(vendored(), home_ / wheel_.file);
  write_file(home_ / wheel_.file, "mine");
  EXPECT_EQ(vendored(), home_ / wheel_.digest.hex());
  EXPECT_EQ(read_file(home_ / wheel_.file), "mine");
  EXPECT_EQ(vendored(), home_ / wheel_.digest.hex());
  fs::remove(home_ / wheel_.file);
  make_folders(home_ / wheel_.file);
  EXPECT_EQ(vendored(), home_ / wheel_.digest.hex());
}

TEST_F(VendorTest, AStoreTakesIntactCopies) {
  Store other{folder_.path() / "other"};
  make_folders(home_);
  const VendorFolders folders{{home_}};
  EXPECT_FALSE(keep_vendored(other, folders, locked_file(wheel_)));
  write_file(home_ / wheel_.file, "xis");
  EXPECT_FALSE(keep_vendored(other, folders, locked_file(wheel_)));
  write_file(home_ / wheel_.digest.hex(), "six");
  EXPECT_TRUE(keep_vendored(other, folders, locked_file(wheel_)));
  EXPECT_TRUE(other.has(wheel_.digest));
  fs::remove(home_ / wheel_.digest.hex());
  EXPECT_TRUE(keep_vendored(other, folders, locked_file(wheel_)));
}

}  // namespace
}  // namespace mlenv
