#include "base/lock_wait.hpp"

#include <gtest/gtest.h>

#include <sys/file.h>
#include <unistd.h>
#include <string>

#include "base/files.hpp"

namespace mlenv {
namespace {

TEST(LockWait, SaysWhoHasIt) {
  const TemporaryFolder folder{temporary_root()};
  const std::string path = (folder.path() / "lock").string();
  const FileLock held = FileLock::wait(path, FileLock::Mode::exclusive);
  const Fd other = open_file(path, O_RDWR);
  const std::string said = lock_wait_text(other.get(), path);
  EXPECT_NE(said.find("`" + path + "`"), std::string::npos) << said;
  // Where the file system's numbers are not those of its files (btrfs), nobody is named.
  const bool named = said.find("process " + std::to_string(::getpid())) != std::string::npos;
  EXPECT_TRUE(named || said.find("another process") != std::string::npos) << said;
}

TEST(LockWait, OneThatIsFreeIsHadAtOnce) {
  const TemporaryFolder folder{temporary_root()};
  int told = 0;
  on_lock_wait([&](const std::string&) { ++told; });
  { const FileLock lock = FileLock::wait(folder.path() / "lock", FileLock::Mode::shared); }
  EXPECT_TRUE(FileLock::attempt(folder.path() / "lock", FileLock::Mode::exclusive));
  on_lock_wait({});
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace mlenv
