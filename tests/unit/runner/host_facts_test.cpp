#include "runner/host_facts.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

class HostFactsTest : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    make_folders((root_.path() / path).parent_path());
    write_file(root_.path() / path, text, false);
  }
  HostFacts facts() const { return probe_host(root_.path()); }

 private:
  TemporaryFolder root_{temporary_root()};
};

TEST_F(HostFactsTest, TheReleaseThatABaseCanBe) {
  EXPECT_EQ(facts().base, "");
  put("etc/os-release", "PRETTY_NAME=\"Debian\"\nVERSION_CODENAME=trixie\nID=debian\n");
  EXPECT_EQ(facts().base, "debian:trixie");
  put("etc/os-release", "VERSION_CODENAME='bookworm'\nID=\"debian\"\n");
  EXPECT_EQ(facts().base, "debian:bookworm");
  put("etc/os-release", "ID=ubuntu\nVERSION_CODENAME=noble\n");
  EXPECT_EQ(facts().base, "ubuntu:noble");
  put("etc/os-release", "ID=debian\nVERSION_CODENAME=buster\n");
  EXPECT_EQ(facts().base, "") << "not one that mlenv knows";
}

TEST_F(HostFactsTest, NvidiasDriver) {
  EXPECT_EQ(facts().nvidia_driver, "");
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n"
      "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n");
  EXPECT_EQ(facts().nvidia_driver, "535.54.03");
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (a@b)\n");
  EXPECT_EQ(facts().nvidia_driver, "580.65.06");
  put("proc/driver/nvidia/version", "nothing of the kind\nGCC version: 120.1.2\n");
  EXPECT_EQ(facts().nvidia_driver, "");
  put("sys/module/nvidia/version", "470.57.02\n");
  EXPECT_EQ(facts().nvidia_driver, "470.57.02");
}

}  // namespace
}  // namespace mlenv
