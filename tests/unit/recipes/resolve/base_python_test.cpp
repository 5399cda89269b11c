#include "recipes/resolve/base_python.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

using namespace std::string_literals;

TEST(BasePython, VersionsAreTextsOfTheirOwn) {
  EXPECT_EQ(version_text_in("\0003.11.9\0"s, "3.11"), "3.11.9");
  EXPECT_EQ(version_text_in("x3.11.9\0\0003.11.10\0"s, "3.11"), "3.11.10");
  EXPECT_EQ(version_text_in("\0003.14.0rc2\0"s, "3.14"), "3.14.0rc2");
  EXPECT_EQ(version_text_in("\0003.11.x\0\0003.11.\0\0003.11.9 (main)\0"s, "3.11"), "");
  EXPECT_EQ(version_text_in("\0003.11.9"s, "3.11"), "");
}

TEST(BasePython, TheBannerTellsGlibc) {
  EXPECT_EQ(glibc_banner_in("..GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n"),
            "2.36");
  EXPECT_EQ(glibc_banner_in("GNU C Library (GNU libc) development release version 2.41.9000."),
            "2.41");
  EXPECT_EQ(glibc_banner_in("GNU C Library"), "");
  EXPECT_EQ(glibc_banner_in("stable release version 2.36."), "");
}

class BaseFilesTest : public testing::Test {
 protected:
  void add(const std::string& path, std::string_view text, bool program = false) const {
    make_folders((folder_.path() / path).parent_path());
    write_file(folder_.path() / path, text);
    if (program) fs::permissions(folder_.path() / path, fs::perms::owner_all);
  }
  void link(const std::string& path, const std::string& target) const {
    make_folders((folder_.path() / path).parent_path());
    fs::create_symlink(target, folder_.path() / path);
  }
  StackedTrees files() const { return StackedTrees{{folder_.path()}}; }

  TemporaryFolder folder_{temporary_root()};
};

TEST_F(BaseFilesTest, TheFirstOnPathCounts) {
  add("usr/bin/python3.11", "\0003.11.2\0"s, true);
  link("usr/bin/python3", "python3.11");
  link("bin", "usr/bin");
  add("usr/local/bin/python3.12", "elf", true);
  link("usr/local/bin/python3", "/usr/local/bin/python3.12");
  add("usr/local/lib/libpython3.12.so.1.0", "\0003.12.7\0"s);
  const StackedTrees trees = files();
  const auto first = base_python(trees, "/usr/local/bin:/usr/bin", "python3");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->interpreter, "/usr/local/bin/python3.12");
  EXPECT_EQ(first->version, "3.12.7");
  const auto named = base_python(trees, "/usr/local/bin:/bin", "python3.11");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->interpreter, "/usr/bin/python3.11");
  EXPECT_EQ(named->version, "3.11.2");
  EXPECT_FALSE(base_python(trees, "/usr/local/bin:/bin", "python3.10"));
  EXPECT_FALSE(base_python(trees, "usr/bin::", "python3"));

  add("opt/venv/bin/python3.11", "\0003.11.9\0"s, true);
  const auto behind = base_python(files(), "/opt/venv/bin:/usr/bin", "python3.11");
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind->interpreter, "/usr/bin/python3.11");
}

TEST_F(BaseFilesTest, OtherInterpretersHaveNoVersion) {
  add("opt/pypy/pypy3.10", "\0003.10.14\0"s, true);
  link("usr/bin/python3", "/opt/pypy/pypy3.10");
  const auto found = base_python(files(), "/usr/bin", "python3");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version, "");
}

TEST_F(BaseFilesTest, CLibraries) {
  add("usr/lib/x86_64-linux-gnu/libc.so.6",
      "GNU C Library (Ubuntu GLIBC 2.39-0ubuntu8) stable release version 2.39.");
  EXPECT_EQ(base_glibc(files()), "2.39");
  EXPECT_FALSE(has_musl(files()));
  add("lib/ld-musl-x86_64.so.1", "");
  EXPECT_TRUE(has_musl(files()));
}

TEST_F(BaseFilesTest, TheReleaseIsRead) {
  add("usr/lib/os-release", "NAME=x\nID=ubuntu\nVERSION_CODENAME=\"noble\"\nVERSION_ID='24.04'\n");
  EXPECT_EQ(os_release_value(files(), "ID"), "ubuntu");
  EXPECT_EQ(os_release_value(files(), "VERSION_CODENAME"), "noble");
  EXPECT_EQ(os_release_value(files(), "VERSION_ID"), "24.04");
  EXPECT_EQ(os_release_value(files(), "VERSION"), "");
}

}  // namespace
}  // namespace mlenv
