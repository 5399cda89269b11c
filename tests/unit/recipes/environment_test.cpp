#include "recipes/environment.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

using What = PackageChange::What;

LockedWheel sized_wheel(const std::string& name, const std::string& version, std::uint64_t size) {
  return {
      name, version, name + '-' + version + "-py3-none-any.whl", size, Digest::of(name + version),
      false};
}

LockedDeb installed_deb(const std::string& name, const std::string& version,
                        const std::string& architecture = "amd64") {
  return {name,
          version,
          architecture,
          "pool/main/" + name + '_' + version,
          7,
          Digest::of(name + version)};
}

Lock environment_lock() {
  Lock lock;
  lock.request.base = "debian:bookworm";
  lock.settings.name = "train";
  lock.settings.env = {{"KEPT", "1"}, {"OLD", "x"}};
  lock.debs = {installed_deb("git", "1:2.39.5-0+deb12u2"),
               installed_deb("libc6", "2.36-9+deb12u13")};
  lock.wheels = {sized_wheel("numpy", "2.4.6", 16), sized_wheel("six", "1.16", 11),
                 sized_wheel("torch", "2.9.0", 9)};
  return lock;
}

std::string told_changes(const std::vector<PackageChange>& changes) {
  std::string text;
  for (const PackageChange& one : changes) {
    text += one.either().name + ' ' + std::string(name_of(one.what)) + '\n';
  }
  return text;
}

TEST(Environment, EqualLocksDoNotDiffer) {
  EXPECT_TRUE(diff_locks(environment_lock(), environment_lock()).empty());
  EXPECT_EQ(fetch_between(environment_lock(), environment_lock()).packages, 0U);
}

TEST(Environment, TellsUpgradesFromDowngradesAsEachWorldOrdersThem) {
  Lock to = environment_lock();
  // An older upstream under a newer epoch, and a pre-release under Debian's tilde.
  to.debs = {installed_deb("git", "2:1.0"), installed_deb("libc6", "2.36-9+deb12u13~rc1")};
  to.wheels = {sized_wheel("numpy", "2.10.0", 17), sized_wheel("six", "1.16rc1", 11),
               sized_wheel("torch", "2.9.0.post1", 9)};
  const EnvironmentDiff diff = diff_locks(environment_lock(), to);
  EXPECT_EQ(told_changes(diff.debs), "git upgraded\nlibc6 downgraded\n");
  EXPECT_EQ(told_changes(diff.wheels), "numpy upgraded\nsix downgraded\ntorch upgraded\n");
}

TEST(Environment, TellsAddedRemovedAndOtherBytes) {
  Lock to = environment_lock();
  to.wheels[0].digest = Digest::of("another build");
  to.wheels[1] = sized_wheel("sympy", "1.14", 62);
  to.wheels[2].requested = true;
  to.debs.pop_back();
  const EnvironmentDiff diff = diff_locks(environment_lock(), to);
  EXPECT_EQ(told_changes(diff.wheels),
            "numpy other-bytes\nsix removed\nsympy added\ntorch other-record\n");
  EXPECT_EQ(told_changes(diff.debs), "libc6 removed\n");
  const Fetch fetch = fetch_between(environment_lock(), to);
  EXPECT_EQ(fetch.packages, 2U);
  EXPECT_EQ(fetch.bytes, 16U + 62U);
}

TEST(Environment, APackageForEveryMachineIsReplacedByOneForThisMachine) {
  Lock to = environment_lock();
  to.debs[0] = installed_deb("git", "1:2.40", "all");
  EXPECT_EQ(told_changes(diff_locks(environment_lock(), to).debs), "git upgraded\n");
}

TEST(Environment, TellsValues) {
  Lock to = environment_lock();
  to.settings.env = {{"KEPT", "2"}, {"NEW", ""}};
  to.settings.sources = Digest::of("sources");
  to.settings.command = {"sh", "-c", "a, b"};
  to.cuda = LockedCuda{.release = "13.0", .min_driver = "580"};
  Lock from = environment_lock();
  from.settings.command = {"sh", "-c", "a", "b"};
  const ValueChanges expected = {
      {"command", "sh` `-c` `a` `b", "sh` `-c` `a, b"},
      {"package sources in the image", std::nullopt, Digest::of("sources").brief()},
      {"env KEPT", "1", "2"},
      {"env NEW", std::nullopt, ""},
      {"env OLD", "x", std::nullopt},
      {"cuda", std::nullopt, "13.0"},
      {"oldest driver", std::nullopt, "580"}};
  EXPECT_EQ(diff_locks(from, to).values, expected);
}

TEST(Environment, KnowsTheFilesThatTell) {
  for (const char* path :
       {"var/lib/dpkg/status", "var/lib/dpkg/status.d/base-files",
        "opt/venv/lib/python3/site-packages/torch-2.9.0+cu130.dist-info/METADATA",
        "usr/local/lib/python3.11/dist-packages/six-1.16.dist-info/METADATA"}) {
    EXPECT_NE(tells_of_packages(path), Want::nothing) << path;
  }
  for (const char* path :
       {"var/lib/dpkg/status-old", "var/lib/dpkg/status.d/base-files.md5sums",
        "usr/lib/python3/dist-packages/six-1.16.dist-info/METADATA",
        "a/site-packages/setuptools/_vendor/wheel-0.45.dist-info/METADATA",
        "a/site-packages/torch-2.9.0.dist-info/RECORD", "torch-2.9.0.dist-info/METADATA"}) {
    EXPECT_EQ(tells_of_packages(path), Want::nothing) << path;
  }
}

TEST(Environment, ReadsTheFilesOfAnImage) {
  const std::string site = "opt/venv/lib/python3/site-packages/";
  const Environment found = environment_in(
      {{"var/lib/dpkg/status",
        "Package: python3\nStatus: install ok installed\nArchitecture: amd64\n"
        "Version: 3.11.2-1+b1\n\n"
        "Package: python3.11-minimal\nStatus: hold ok installed\nArchitecture: amd64\n"
        "Version: 3.11.2-6+deb12u6\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 1\n"},
       {"var/lib/dpkg/status.d/tzdata", "Package: tzdata\nVersion: 2025b\nArchitecture: all\n"},
       {site + "Typing_Extensions-4.15.0.dist-info/METADATA", ""},
       {site + "nvidia_cuda_runtime-13.0.96.dist-info/METADATA", ""}},
      "linux/amd64");
  EXPECT_EQ(python_in(found), "3.11.2");
  ASSERT_EQ(found.debs.size(), 3U);
  EXPECT_EQ(found.debs[2].name, "tzdata");
  ASSERT_EQ(found.wheels.size(), 2U);
  EXPECT_EQ(found.wheels[1].name, "typing-extensions");
  EXPECT_EQ(found.wheels[1].version, "4.15.0");

  Lock lock;
  lock.debs = {installed_deb("python3", "3.11.2-1+b1"),
               installed_deb("python3.11-minimal", "3.11.2-6+deb12u6"),
               installed_deb("tzdata", "2025b", "all")};
  lock.wheels = {sized_wheel("nvidia-cuda-runtime", "13.0.96", 1),
                 sized_wheel("typing-extensions", "4.15", 1)};
  EXPECT_TRUE(diff_environments(environment_of(lock), found).empty());
  lock.wheels.pop_back();
  lock.wheels[0].version = "12.9.79";
  const EnvironmentDiff diff = diff_environments(environment_of(lock), found);
  EXPECT_EQ(told_changes(diff.wheels), "nvidia-cuda-runtime upgraded\ntyping-extensions added\n");
  ASSERT_EQ(diff.values.size(), 2U);
  EXPECT_EQ(diff.values[0], (ValueChange{"cuda", "12.9", "13.0"}));
}

TEST(Environment, PairsPackagesThatAreThereTwice) {
  const std::string system = "usr/local/lib/python3.11/site-packages/";
  const std::string own = "opt/venv/lib/python3.11/site-packages/";
  const auto with = [&](const std::string& first, const std::string& second) {
    return environment_in({{system + "pip-" + first + ".dist-info/METADATA", ""},
                           {own + "pip-" + second + ".dist-info/METADATA", ""}},
                          "linux/amd64");
  };
  EXPECT_TRUE(diff_environments(with("24.0", "25.1"), with("25.1", "24.0")).empty());
  const EnvironmentDiff diff = diff_environments(with("24.0", "25.1"), with("24.0", "24.0"));
  EXPECT_EQ(told_changes(diff.wheels), "pip removed\n");
  EXPECT_EQ(told_changes(diff_environments(with("24.0", "25.1"), with("24.0", "26.0")).wheels),
            "pip upgraded\n");
}

}  // namespace
}  // namespace mlenv
