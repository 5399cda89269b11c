#include "runner/local/image_root.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

class ImageRootTest : public testing::Test {
 protected:
  ImageRootTest() : folder_(temporary_root()), outside_(folder_.path() / "outside") {
    make_folders(folder_.path() / "root/etc");
    make_folders(outside_);
  }
  fs::path inside(const std::string& path) { return folder_.path() / "root" / path; }
  ImageRoot root() { return ImageRoot{folder_.path() / "root"}; }
  TemporaryFolder folder_;
  fs::path outside_;
};

TEST_F(ImageRootTest, WritesAndReads) {
  root().write("/a/b/c", "text", 0600);
  EXPECT_EQ(read_file(inside("a/b/c")), "text");
  EXPECT_EQ(root().read("/a/b/c"), "text");
  EXPECT_EQ(root().read("/a/b/c", 2), "te");
  struct stat status {};
  ASSERT_EQ(::stat(inside("a/b/c").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_EQ(root().list("/a"), std::vector<std::string>{"b"});
  EXPECT_FALSE(root().read("/a"));
  EXPECT_FALSE(root().read("/none"));
}

TEST_F(ImageRootTest, LinksStayInside) {
  write_file(outside_ / "secret", "host", false);
  fs::create_directory_symlink(outside_, inside("escape"));
  fs::create_symlink(outside_ / "secret", inside("etc/secret"));
  fs::create_directory_symlink("../../../../outside", inside("up"));
  EXPECT_FALSE(root().read("/etc/secret"));
  EXPECT_FALSE(root().read("/escape/secret"));
  EXPECT_FALSE(root().read("/up/secret"));
  EXPECT_EQ(code_of([&] { root().write("/escape/made", "x"); }), "image-root");
  EXPECT_FALSE(fs::exists(outside_ / "made"));
}

TEST_F(ImageRootTest, ALinkIsReplacedNotFollowed) {
  write_file(outside_ / "resolv.conf", "host", false);
  fs::create_symlink(outside_ / "resolv.conf", inside("etc/resolv.conf"));
  root().write("/etc/resolv.conf", "ours");
  EXPECT_EQ(read_file(outside_ / "resolv.conf"), "host");
  EXPECT_EQ(root().read("/etc/resolv.conf"), "ours");
}

TEST_F(ImageRootTest, AbsoluteLinksLeadWithinTheImage) {
  fs::create_directory_symlink("/etc", inside("config"));
  root().write("/config/file", "x");
  EXPECT_EQ(read_file(inside("etc/file")), "x");
}

}  // namespace
}  // namespace mlenv
