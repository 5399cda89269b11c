#include "base/own_entries.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace mlenv {
namespace {

TEST(OwnEntries, NamesAreOursAsAWholeOnly) {
  EXPECT_TRUE(has_temporary_name("work-0123456789ab", "work-"));
  EXPECT_FALSE(has_temporary_name("work-0123456789a", "work-"));
  EXPECT_FALSE(has_temporary_name("work-0123456789abc", "work-"));
  EXPECT_FALSE(has_temporary_name("work-0123456789aB", "work-"));
  EXPECT_FALSE(has_temporary_name("homework-01234567", "work-"));
  EXPECT_FALSE(has_temporary_name("work-", "work-"));
  EXPECT_TRUE(is_digest_name(std::string(64, 'a')));
  EXPECT_FALSE(is_digest_name(std::string(64, 'g')));
  EXPECT_FALSE(is_digest_name(std::string(65, 'a')));
  EXPECT_TRUE(is_time_name("20260301-120000-0fa4f1"));
  EXPECT_FALSE(is_time_name("20260301-120000-0fa4f"));
  EXPECT_FALSE(is_time_name("20260301-120000-0fa4fg"));
  EXPECT_FALSE(is_time_name("experiment-of-tuesday1"));
}

TEST(OwnEntries, LinksAreNotWhatTheyLeadTo) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path& path = folder.path();
  write_file(path / "file", "");
  fs::create_symlink("file", path / "link");
  fs::create_directory_symlink(".", path / "folder-link");
  EXPECT_TRUE(is_own_file(path / "file"));
  EXPECT_FALSE(is_own_file(path / "link"));
  EXPECT_FALSE(is_own_folder(path / "folder-link"));
  EXPECT_FALSE(is_own_folder(path / "none"));
  EXPECT_TRUE(is_own_folder(path));
}

TEST(OwnEntries, FoldersAreNobodyElsesToWriteTo) {
  const TemporaryFolder folder{temporary_root()};
  const mode_t before = ::umask(0);
  make_own_folders(folder.path() / "a/b/");
  make_own_folders(folder.path() / "a/b");
  const Fd file = open_file(folder.path() / "file", O_WRONLY | O_CREAT);
  ::umask(before);
  struct stat status {};
  for (const char* const name : {"a", "a/b"}) {
    ASSERT_EQ(::stat((folder.path() / name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0755U);
  }
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0644U);
}

}  // namespace
}  // namespace mlenv
