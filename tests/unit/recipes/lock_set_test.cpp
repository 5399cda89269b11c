#include "recipes/lock_set.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

LockedDeb pooled_deb(const std::string& name, const std::string& architecture,
                     const std::string& version = "1") {
  const std::string file = name + "_" + version + "_" + architecture + ".deb";
  return {name, version, architecture, "pool/main/" + file, 10, Digest::of(file)};
}

LockedWheel tagged_wheel(const std::string& name, const std::string& tags,
                         const std::string& version = "1") {
  const std::string file = name + "-" + version + "-" + tags + ".whl";
  return {name, version, file, 10, Digest::of(file), false};
}

Lock lock_for(const std::string& platform) {
  const bool arm = platform == "linux/arm64";
  Lock lock;
  lock.platform = platform;
  lock.epoch = 7;
  lock.request.base = "debian:bookworm";
  lock.request.packages = {"numpy"};
  lock.settings.name = "two";
  lock.settings.workdir = "/workspace";
  lock.distribution = "debian";
  lock.suite = "bookworm";
  lock.python = "3.11.2";
  lock.debs = {pooled_deb("adduser", "all"), pooled_deb("libc6", arm ? "arm64" : "amd64"),
               pooled_deb("tzdata", "all", arm ? "2" : "1")};
  if (!arm) lock.debs.push_back(pooled_deb("zz-tools", "all"));
  const std::string machine = arm ? "aarch64" : "x86_64";
  lock.wheels = {tagged_wheel("idna", "py3-none-any"),
                 tagged_wheel("numpy", "cp311-cp311-manylinux_2_28_" + machine)};
  if (!arm) lock.wheels.push_back(tagged_wheel("tools", "py3-none-any"));
  return lock;
}

LockSet both() { return {{lock_for("linux/amd64"), lock_for("linux/arm64")}}; }

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

std::string locks_with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string locks_refusal(const std::string& text) {
  try {
    parse_locks(text, "r.lock");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::usage);
    EXPECT_EQ(error.code(), "lock-invalid");
    return error.frames().front();
  }
}

TEST(LockSet, OfOnePlatformIsThatLocksOwnText) {
  const Lock lock = lock_for("linux/amd64");
  EXPECT_EQ(render_locks({{lock}}), render_lock(lock));
  EXPECT_EQ(locks_digest({{lock}}), lock_digest(lock));
  EXPECT_EQ(parse_locks(render_lock(lock), "r.lock"), (LockSet{{lock}}));
}

TEST(LockSet, OfTwoSurvivesWritingAndReading) {
  const std::string text = render_locks(both());
  EXPECT_EQ(parse_locks(text, "r.lock"), both());
  EXPECT_EQ(render_locks(parse_locks(text, "r.lock")), text);
  EXPECT_NE(text.find("revision = 2\n"), std::string::npos);
  EXPECT_EQ(parse_lock(text, "r.lock"), both().locks.front()) << "as it would be alone";
  const std::string checksum = "checksum = \"" + locks_digest(both()).hex() + "\"\n";
  EXPECT_EQ(locks_digest(both()), Digest::of(locks_with(text, checksum, "")));
}

TEST(LockSet, WhatIsTheSameStandsThereOnce) {
  const std::string text = render_locks(both());
  EXPECT_EQ(count_of(text, "name = \"adduser\""), 1U);
  EXPECT_EQ(count_of(text, "name = \"idna\""), 1U);
  EXPECT_EQ(count_of(text, "name = \"tzdata\""), 2U);
  EXPECT_EQ(count_of(text, "[request]"), 1U);
  EXPECT_NE(text.find("\n[others.\"linux/arm64\".without]\ndebian = [\n  \"zz-tools\",\n]\n"
                      "wheels = [\n  \"tools\",\n]\n"),
            std::string::npos)
      << text;
}

// Golden: a change here changes the locks of two platforms.
TEST(LockSet, HasStableText) {
  const std::string text = render_locks(both());
  const std::string_view start = "\n[others.";
  EXPECT_EQ(text.substr(text.find(start)), R"(
[others."linux/arm64".resolved]
distribution = "debian"
suite = "bookworm"
python = "3.11.2"

[others."linux/arm64".packages]
debian = [
  { name = "libc6", version = "1", architecture = "arm64", path = "pool/main/libc6_1_arm64.deb", size = 10, sha256 = ")" +
                                               Digest::of("libc6_1_arm64.deb").hex() + R"(" },
  { name = "tzdata", version = "2", architecture = "all", path = "pool/main/tzdata_2_all.deb", size = 10, sha256 = ")" +
                                               Digest::of("tzdata_2_all.deb").hex() + R"(" },
]
wheels = [
  { name = "numpy", version = "1", file = "numpy-1-cp311-cp311-manylinux_2_28_aarch64.whl", size = 10, sha256 = ")" +
                                               both().locks[1].wheels[1].digest.hex() + R"(" },
]

[others."linux/arm64".without]
debian = [
  "zz-tools",
]
wheels = [
  "tools",
]
)");
}

TEST(LockSet, AWheelThatWasBuiltBelongsToItsOwnLock) {
  LockSet set = both();
  Lock& first = set.locks[0];
  first.build_wheels = {tagged_wheel("setuptools", "py3-none-any")};
  first.sources = {
      {"idna", "1", "idna-1.tar.gz", 5, Digest::of("source"), {first.build_wheels[0].file}}};
  first.revision = least_revision(first);
  const std::string text = render_locks(set);
  EXPECT_EQ(parse_locks(text, "r.lock"), set);
  EXPECT_EQ(count_of(text, "name = \"idna\""), 3U) << "two wheels and the source";
}

TEST(LockSet, RefusesWhatDoesNotFitTogether) {
  const std::string text = render_locks(both());
  const auto expect = [&](std::string_view from, std::string_view to, std::string_view words) {
    const std::string said = locks_refusal(locks_with(text, from, to));
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  expect("size = 10", "size = 11", "edited or merged by hand");
  expect("revision = 2", "revision = 1", "locks of revision 1 have no `others`");
  expect("platform = \"linux/amd64\"", "platform = \"linux/arm64\"",
         "the lock's `platform` is linux/arm64");
  expect("  \"zz-tools\",\n", "  \"libc6\",\n", "\"libc6\" is no package for every platform");
  expect("[others.\"linux/arm64\".without]", "[others.\"linux/arm64\".wthout]", "unknown key");
  expect("architecture = \"arm64\"", "architecture = \"amd64\"",
         "the lock's `platform` is linux/arm64");
  const std::string mips = "\n[others.\"linux/mips\".resolved]\nsuite = \"bookworm\"\n";
  EXPECT_NE(locks_refusal(text + mips).find("unknown platform \"linux/mips\""), std::string::npos);
  EXPECT_EQ(
      parse_locks(locks_with(text, "revision = 2", "revision = 9") + mips, "r.lock").platforms(),
      "linux/amd64, linux/arm64")
      << "a newer mlenv's";
  const std::string none = text.substr(0, text.find("\n[others."));
  EXPECT_NE(locks_refusal(none + "\n[others]\n").find("`others` holds no platform"),
            std::string::npos);
}

TEST(LockSet, DifferencesSayForWhichPlatform) {
  LockSet to = both();
  for (Lock& lock : to.locks) lock.wheels[0] = tagged_wheel("idna", "py3-none-any", "2");
  to.locks[1].debs[1] = pooled_deb("libc6", "arm64", "3");
  EXPECT_EQ(lock_set_differences(both(), to),
            (std::vector<std::string>{"idna 1 → 2", "linux/arm64: libc6 1 → 3"}));
  EXPECT_TRUE(lock_set_differences(to, to).empty());
  const LockSet one{{lock_for("linux/amd64")}};
  EXPECT_EQ(lock_set_differences(one, both()), std::vector<std::string>{"+ platform linux/arm64"});
  EXPECT_EQ(lock_set_differences(both(), one), std::vector<std::string>{"- platform linux/arm64"});
}

TEST(LockSet, CountsSharedPackagesOnce) {
  const PackageCounts counts = count_packages(both());
  EXPECT_EQ(counts.wheels, 4U);
  EXPECT_EQ(counts.debs, 6U);
  EXPECT_EQ(both().platforms(), "linux/amd64, linux/arm64");
}

}  // namespace
}  // namespace mlenv
