#include <gtest/gtest.h>

#include "runner/engine/keeper/files.hpp"

namespace mlenv::keeper {
namespace {

TEST(KeeperFiles, MakesNothingWhereItCannotTell) {
  EXPECT_FALSE(leads_into_mount("/no-such-folder/a/b"));
  EXPECT_TRUE(leads_into_mount("/proc/self"));
  EXPECT_TRUE(leads_into_mount("/proc/no-such-folder/a"));
  EXPECT_TRUE(leads_into_mount(("/" + std::string(300, 'n')).c_str()));
  EXPECT_TRUE(leads_into_mount(("/proc" + std::string(5000, '/')).c_str()));
}

}  // namespace
}  // namespace mlenv::keeper
