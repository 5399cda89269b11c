// Files in folders that a container renames, and puts links into, while mlenv reads them.
#include "base/files_beneath.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <cerrno>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

class FilesBeneathTest : public testing::Test {
 protected:
  FilesBeneathTest() {
    fs::create_directories(top() / "a/b");
    fs::create_directories(top() / "secret/b");
    write_file(top() / "a/b/file", "own", /*durable=*/false);
    write_file(top() / "secret/b/file", "the machine's", /*durable=*/false);
  }
  /// Another folder in the place of `a`, by a link.
  void swap() const {
    fs::rename(top() / "a", top() / "aside");
    fs::create_symlink("secret", top() / "a");
  }
  static std::string content(const Fd& file) {
    FdSource source{file.get()};
    return read_all(source, 100);
  }
  fs::path top() const { return fs::canonical(folder_.path()); }

 private:
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(FilesBeneathTest, ACanonicalPathIsOpenedThroughNoLink) {
  const fs::path file = top() / "a/b/file";
  EXPECT_EQ(content(open_canonical_file(file)), "own");
  EXPECT_TRUE(open_canonical("/", O_PATH));
  swap();
  EXPECT_EQ(code_of([&] { open_canonical_file(file); }), "file-changed");
  errno = 0;
  EXPECT_FALSE(open_canonical(top() / "a/b", O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(errno, ELOOP);
}

TEST_F(FilesBeneathTest, WhatIsNoFileIsNotWaitedFor) {
  const fs::path file = top() / "a/b/file";
  fs::remove(file);
  EXPECT_EQ(code_of([&] { open_canonical_file(file); }), "file-changed");
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { open_canonical_file(file); }), "file-changed");
  EXPECT_EQ(code_of([&] { open_file_of_set(top() / "a", "b/file"); }), "file-changed");
  EXPECT_EQ(code_of([&] { open_file_of_set(file, ""); }), "file-changed");
}

TEST_F(FilesBeneathTest, LinksOfADataSetStayBelowIt) {
  fs::create_symlink("b/file", top() / "a/inner");
  EXPECT_EQ(content(open_file_of_set(top() / "a", "inner")), "own");
  EXPECT_EQ(content(open_file_of_set(top() / "a/b/file", "")), "own");
  fs::create_symlink("../secret/b", top() / "a/outer");
  EXPECT_EQ(code_of([&] { open_file_of_set(top() / "a", "outer/file"); }), "file-changed");
}

TEST_F(FilesBeneathTest, ALinkIsReadWhereItWasFound) {
  fs::create_symlink("b/file", top() / "a/inner");
  const Fd folder = open_folder(top() / "a");
  EXPECT_EQ(read_link_at(folder.get(), "inner"), "b/file");
  EXPECT_THROW(read_link_at(folder.get(), "b"), Error);
}

}  // namespace
}  // namespace mlenv
