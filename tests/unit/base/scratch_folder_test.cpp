#include "base/scratch_folder.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace mlenv {
namespace {

class ScratchFolders : public testing::Test {
 protected:
  const fs::path& root() const { return root_.path(); }
  std::size_t count() const { return list_folder(root()).size(); }

 private:
  TemporaryFolder root_{temporary_root()};
};

TEST_F(ScratchFolders, GoWithTheirObjects) {
  {
    const ScratchFolder one{root()};
    const ScratchFolder other{root()};
    write_file(one.path() / "file", "words", false);
    EXPECT_NE(one.path(), other.path());
    EXPECT_EQ(count(), 2U);
  }
  EXPECT_EQ(count(), 0U);
}

TEST_F(ScratchFolders, OfAProcessThatWasKilledGoWithTheNext) {
  const ScratchFolder living{root()};
  const pid_t child = ::fork();
  if (child == 0) {
    const ScratchFolder lost{root()};
    write_file(lost.path() / "requirements", "a login", false);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(count(), 2U);
  const ScratchFolder next{root()};
  EXPECT_EQ(count(), 2U);
  EXPECT_TRUE(fs::exists(living.path()));
}

TEST_F(ScratchFolders, WhatHasTheirNameAloneStays) {
  write_file(root() / "mlenv-scratch-file", "not ours", false);
  fs::create_directory_symlink(root(), root() / "mlenv-scratch-link");
  const ScratchFolder one{root()};
  EXPECT_EQ(count(), 3U);
}

}  // namespace
}  // namespace mlenv
