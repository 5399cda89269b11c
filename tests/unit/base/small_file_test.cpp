#include "base/small_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/process.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

class SmallFileTest : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder.path() / name; }
  TemporaryFolder folder{temporary_root()};
};

TEST_F(SmallFileTest, ReadsUpToTheLimit) {
  write_file(path("a"), "12345");
  EXPECT_EQ(read_small_file(path("a"), 5), "12345");
  EXPECT_EQ(code_of([&] { (void)read_small_file(path("a"), 4); }), "too-large");
  EXPECT_EQ(read_small_file_if_exists(path("b"), 4), std::nullopt);
  EXPECT_EQ(read_small_file_if_exists(path("a") / "b", 4), std::nullopt);
  EXPECT_EQ(code_of([&] { (void)read_small_file(path("b"), 4); }), "absent");
  fs::create_symlink("a", path("link"));
  EXPECT_EQ(read_small_file(path("link"), 5), "12345");
}

TEST_F(SmallFileTest, HolesCountAsTheirSize) {
  write_file(path("a"), "");
  fs::resize_file(path("a"), std::uint64_t{1} << 40U);
  EXPECT_EQ(code_of([&] { (void)read_small_file(path("a"), 1 << 20); }), "too-large");
}

TEST_F(SmallFileTest, FilesWithoutASizeHaveTheLimitToo) {
  EXPECT_NE(read_small_file("/proc/self/status", 1 << 20), "");
  EXPECT_EQ(code_of([] { (void)read_small_file("/proc/self/status", 10); }), "too-large");
}

TEST_F(SmallFileTest, WhatIsNoFileIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  ASSERT_EQ(::mknod(path("socket").c_str(), S_IFSOCK | 0600, 0), 0);
  fs::create_symlink("/dev/zero", path("zero"));
  fs::create_symlink("pipe", path("link"));
  for (const char* name : {"pipe", "zero", "link", "socket", "."}) {
    EXPECT_EQ(code_of([&] { (void)read_small_file(path(name), 100); }), "not-a-file") << name;
    EXPECT_EQ(code_of([&] { (void)read_small_file_if_exists(path(name), 100); }), "not-a-file");
    EXPECT_EQ(code_of([&] { check_small_file(path(name), 100); }), "not-a-file") << name;
  }
}

TEST_F(SmallFileTest, WhatIsNoFileIsNotWrittenTo) {
  write_all(open_to_write(path("new"), 0, 0600).get(), as_bytes("1"));
  write_all(open_to_write(path("new"), O_APPEND, 0600).get(), as_bytes("2"));
  EXPECT_EQ(read_file(path("new")), "12");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_directory(path("folder"));
  fs::create_symlink("new", path("link"));
  fs::create_symlink("absent", path("dangling"));
  for (const char* name : {"pipe", "folder", "link", "dangling"}) {
    EXPECT_EQ(code_of([&] { (void)open_to_write(path(name), 0, 0600); }), "not-a-file") << name;
  }
  const Fd reader{::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  EXPECT_EQ(code_of([&] { (void)open_to_write(path("pipe"), 0, 0600); }), "not-a-file");
  EXPECT_EQ(code_of([&] { (void)open_to_write("/dev/null", 0, 0600); }), "not-a-file");
  EXPECT_EQ(code_of([&] { (void)open_to_write(path("none") / "a", 0, 0600); }), "absent");
  EXPECT_FALSE(fs::exists(path("absent")));
}

TEST_F(SmallFileTest, APipeOfOursIsReadUpToTheLimit) {
  for (const std::uint64_t limit : {5U, 4U}) {
    Pipe pipe = make_pipe();
    write_all(pipe.write_end.get(), as_bytes("12345"));
    pipe.write_end.reset();
    const fs::path own = fmt::format("/dev/fd/{}", pipe.read_end.get());
    const auto read = [&] { return read_named_file(own, limit); };
    if (limit == 5) {
      EXPECT_EQ(read(), "12345");
    } else {
      EXPECT_EQ(code_of([&] { (void)read(); }), "too-large");
    }
  }
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { (void)read_named_file(path("pipe"), 100); }), "not-a-file");
  EXPECT_EQ(code_of([] { (void)read_named_file("/dev/zero", 100); }), "not-a-file");
}

}  // namespace
}  // namespace mlenv
