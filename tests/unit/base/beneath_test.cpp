#include "base/beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace mlenv {
namespace {

/// Both ways must say the same.
class Beneath : public testing::TestWithParam<bool> {
 protected:
  Beneath() {
    fs::create_directories(top() / "root/folder/deep");
    fs::create_directories(top() / "outside");
    write_file(top() / "outside/secret", "secret");
    write_file(top() / "secret", "secret");
    write_file(top() / "root/folder/file", "inside");
    link("folder/file", "near");
    link("/folder/file", "absolute");
    link("../../../../folder/file", "folder/deep/up");
    link("../outside", "out");
    link((top() / "outside").string(), "far");
    link("round", "round");
    link("/proc/self/root", "magic");
    link("absolute", "twice");
    root_ = open_file(top() / "root", O_PATH | O_DIRECTORY);
  }
  fs::path top() const { return folder_.path(); }
  void link(const std::string& target, const std::string& at) const {
    fs::create_symlink(target, top() / "root" / at);
  }
  Fd open(const std::string& path, Links links, int flags = O_RDONLY, mode_t mode = 0) const {
    errno = 0;
    return GetParam() ? walk_beneath(root_.get(), path, flags, links, mode)
                      : open_beneath(root_.get(), path, flags, links, mode);
  }
  /// The text, or errno.
  std::string text(const std::string& path, Links links) const {
    const Fd fd = open(path, links);
    if (!fd) return std::to_string(errno);
    FdSource source{fd.get()};
    return read_all(source, 100);
  }
  static std::string error(int number) { return std::to_string(number); }

  TemporaryFolder folder_{temporary_root()};
  Fd root_;
};

INSTANTIATE_TEST_SUITE_P(Ways, Beneath, testing::Bool(),
                         [](const auto& way) { return way.param ? "Walk" : "Kernel"; });

TEST_P(Beneath, LinksInside) {
  for (const char* path :
       {"folder/file", "/folder/file", "near", "absolute", "folder/deep/up", "twice",
        "../../folder/file", "folder/./deep/../file", "//folder//file"}) {
    EXPECT_EQ(text(path, Links::inside), "inside") << path;
  }
  for (const char* path : {"out/secret", "far/secret", "../secret", "folder/../../secret"}) {
    EXPECT_EQ(text(path, Links::inside), error(ENOENT)) << path;
  }
  EXPECT_EQ(text("round", Links::inside), error(ELOOP));
  EXPECT_EQ(text("folder/file/", Links::inside), error(ENOTDIR));
  EXPECT_EQ(text("", Links::inside), error(ENOENT));
  EXPECT_FALSE(open("magic/etc", Links::inside));
}

TEST_P(Beneath, LinksBelow) {
  EXPECT_EQ(text("near", Links::below), "inside");
  EXPECT_EQ(text("folder/deep/../file", Links::below), "inside");
  for (const char* path :
       {"/folder/file", "absolute", "folder/deep/up", "out/secret", "far/secret", "../secret"}) {
    EXPECT_EQ(text(path, Links::below), error(EXDEV)) << path;
  }
}

TEST_P(Beneath, NoLinks) {
  EXPECT_EQ(text("folder/file", Links::none), "inside");
  for (const char* path : {"near", "absolute", "out/secret", "far/secret", "magic/etc"}) {
    EXPECT_EQ(text(path, Links::none), error(ELOOP)) << path;
  }
  EXPECT_EQ(text("../secret", Links::none), error(EXDEV));
}

TEST_P(Beneath, ALinkItself) {
  const Fd fd = open("far", Links::none, O_PATH | O_NOFOLLOW);
  struct stat status {};
  ASSERT_TRUE(fd && ::fstat(fd.get(), &status) == 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_FALSE(open("far", Links::inside, O_RDONLY | O_NOFOLLOW));
  EXPECT_EQ(errno, ELOOP);
}

TEST_P(Beneath, FoldersAndNewFiles) {
  EXPECT_TRUE(open(".", Links::none, O_PATH | O_DIRECTORY));
  EXPECT_TRUE(open("folder/", Links::below, O_RDONLY | O_DIRECTORY));
  EXPECT_TRUE(open("/", Links::inside, O_RDONLY | O_DIRECTORY));
  EXPECT_TRUE(open("folder/new", Links::inside, O_WRONLY | O_CREAT | O_EXCL, 0600));
  EXPECT_EQ(fs::status(top() / "root/folder/new").permissions(), fs::perms(0600));
  EXPECT_FALSE(open("out/new", Links::below, O_WRONLY | O_CREAT, 0600));
  EXPECT_FALSE(fs::exists(top() / "outside/new"));
}

}  // namespace
}  // namespace mlenv
