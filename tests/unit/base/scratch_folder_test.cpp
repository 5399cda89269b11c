#include "base/scratch_folder.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <optional>

namespace mlenv {
namespace {

class ScratchFolders : public testing::Test {
 protected:
  ScratchFolders() { ::setenv("TMPDIR", root_.path().c_str(), 1); }
  ~ScratchFolders() override {
    if (before_) {
      ::setenv("TMPDIR", before_->c_str(), 1);
    } else {
      ::unsetenv("TMPDIR");
    }
  }
  std::size_t count() const { return list_folder(root_.path()).size(); }

 private:
  static std::optional<std::string> own() {
    const char* text = std::getenv("TMPDIR");
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
  }
  std::optional<std::string> before_ = own();
  TemporaryFolder root_{temporary_root()};
};

TEST_F(ScratchFolders, GoWithTheirObjects) {
  {
    const ScratchFolder one;
    const ScratchFolder other;
    write_file(one.path() / "file", "words", false);
    EXPECT_NE(one.path(), other.path());
    EXPECT_EQ(count(), 2U);
  }
  EXPECT_EQ(count(), 0U);
}

TEST_F(ScratchFolders, OfAProcessThatWasKilledGoWithTheNext) {
  const ScratchFolder living;
  const pid_t child = ::fork();
  if (child == 0) {
    const ScratchFolder lost;
    write_file(lost.path() / "requirements", "a login", false);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(count(), 2U);
  const ScratchFolder next;
  EXPECT_EQ(count(), 2U);
  EXPECT_TRUE(fs::exists(living.path()));
}

TEST_F(ScratchFolders, WhatHasTheirNameAloneStays) {
  write_file(temporary_root() / "mlenv-scratch-file", "not ours", false);
  fs::create_directory_symlink(temporary_root(), temporary_root() / "mlenv-scratch-link");
  const ScratchFolder one;
  EXPECT_EQ(count(), 3U);
}

}  // namespace
}  // namespace mlenv
