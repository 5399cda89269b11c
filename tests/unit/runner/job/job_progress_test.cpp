#include "runner/job/job_progress.hpp"

#include <gtest/gtest.h>

namespace mlenv::job {
namespace {

TEST(JobProgressTest, IsWhereItWasUntilItIsForgotten) {
  const TemporaryFolder folder{temporary_root()};
  EXPECT_EQ(read_progress(folder.path()), std::nullopt);
  const JobProgress progress{3, 1, std::chrono::milliseconds{7'200'500}};
  write_progress(folder.path(), progress);
  EXPECT_EQ(read_progress(folder.path()), progress);
  forget_progress(folder.path());
  EXPECT_EQ(read_progress(folder.path()), std::nullopt);
  forget_progress(folder.path());
}

TEST(JobProgressTest, WhatIsDamagedOrCannotBeWrittenIsNone) {
  const TemporaryFolder folder{temporary_root()};
  write_file(folder.path() / "progress", "{\"attempts\": ");
  EXPECT_EQ(read_progress(folder.path()), std::nullopt);
  write_progress(folder.path() / "nowhere", {1, 0, {}});
  EXPECT_EQ(read_progress(folder.path() / "nowhere"), std::nullopt);
}

}  // namespace
}  // namespace mlenv::job
