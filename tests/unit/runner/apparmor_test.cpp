#include "runner/local/apparmor.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(AppArmor, TheProfileIsUsedWhereItIsLoaded) {
  const TemporaryFolder root{temporary_root()};
  EXPECT_EQ(loaded_container_profile(root.path()), "");
  make_folders(root.path() / "sys/module/apparmor/parameters");
  write_file(root.path() / "sys/module/apparmor/parameters/enabled", "Y\n", false);
  EXPECT_EQ(loaded_container_profile(root.path()), "");
  const fs::path profiles = root.path() / "sys/kernel/security/apparmor/policy/profiles";
  make_folders(profiles / "mlenv.3");
  make_folders(profiles / "mlenv-containers.4");
  EXPECT_EQ(loaded_container_profile(root.path()), "");
  make_folders(profiles / "mlenv-container.5");
  EXPECT_EQ(loaded_container_profile(root.path()), "mlenv-container");
  write_file(root.path() / "sys/module/apparmor/parameters/enabled", "N\n", false);
  EXPECT_EQ(loaded_container_profile(root.path()), "");
}

}  // namespace
}  // namespace mlenv
