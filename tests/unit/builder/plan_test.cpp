#include "builder/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace mlenv {
namespace {

Lock lock_with(std::size_t wheels, std::uint64_t size_bytes) {
  Lock lock;
  lock.distribution = "debian";
  lock.suite = "bookworm";
  lock.python = "3.11.2";
  for (std::size_t i = 0; i < wheels; ++i) {
    const std::string name = "p" + std::to_string(1000 + i);
    lock.wheels.push_back(
        {name, "1", name + "-1-py3-none-any.whl", size_bytes, Digest::of(name), false});
  }
  return lock;
}

std::vector<Digest> keys(const Plan& plan) {
  std::vector<Digest> all;
  all.reserve(plan.steps.size());
  for (const Step& step : plan.steps) all.push_back(step.key);
  return all;
}

TEST(Plan, LargeWheelsGetALayerEachAndSmallOnesShareOne) {
  Lock lock = lock_with(3, 1000);
  lock.wheels[1].size_bytes = kOwnLayerBytes;
  const Plan plan = make_plan(lock);
  ASSERT_EQ(plan.steps.size(), 5U);
  EXPECT_EQ(plan.steps[0].kind, Step::Kind::base);
  EXPECT_EQ(plan.steps[1].kind, Step::Kind::environment);
  EXPECT_EQ(plan.steps[2].wheels, std::vector<std::size_t>{1});
  EXPECT_EQ(plan.steps[3].wheels, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(plan.steps[4].kind, Step::Kind::bytecode);
}

TEST(Plan, NeverMoreThanTheOwnLayersAllowed) {
  Lock lock = lock_with(200, kOwnLayerBytes);
  for (std::size_t i = 0; i < 50; ++i) lock.wheels[i].size_bytes = kOwnLayerBytes * 8;
  EXPECT_LE(make_plan(lock).steps.size(), kOwnLayers + 4);
}

TEST(Plan, APythonOfTheRecipesOwnIsALayerBelowTheEnvironment) {
  Lock lock = lock_with(1, 1000);
  const Plan before = make_plan(lock);
  lock.interpreter = LockedPython{"3.11.2", "python.tar.gz", 7, Digest::of("archive")};
  const Plan plan = make_plan(lock);
  ASSERT_EQ(plan.steps.size(), before.steps.size() + 1);
  EXPECT_EQ(plan.steps[1].kind, Step::Kind::interpreter);
  EXPECT_EQ(plan.steps[0].key, before.steps[0].key);
  EXPECT_NE(plan.steps[2].key, before.steps[1].key) << "the environment leads to it";
  EXPECT_EQ(plan.steps[3].key, before.steps[2].key) << "a wheel's layer serves every Python";
  Lock other = lock;
  other.interpreter->digest = Digest::of("another");
  EXPECT_NE(make_plan(other).steps[1].key, plan.steps[1].key);
}

TEST(Plan, KeysFollowWhatTheyAreMadeOfAndNothingElse) {
  const Lock lock = lock_with(2, kOwnLayerBytes);
  const std::vector<Digest> before = keys(make_plan(lock));
  Lock renamed = lock;
  renamed.settings.name = "other";
  renamed.settings.env["A"] = "b";
  EXPECT_EQ(keys(make_plan(renamed)), before);
  Lock other_python = lock;
  other_python.python = "3.11.9";
  const std::vector<Digest> moved = keys(make_plan(other_python));
  EXPECT_EQ(moved[0], before[0]);
  EXPECT_NE(moved[1], before[1]);
  EXPECT_EQ(moved[2], before[2]) << "a wheel's layer serves every Python";
  EXPECT_NE(moved[4], before[4]) << "bytecode belongs to one full Python version";
  Lock other_time = lock;
  other_time.epoch = 1;
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NE(keys(make_plan(other_time))[i], before[i]);
  }
  Lock requested = lock;
  requested.wheels[0].requested = true;
  EXPECT_NE(keys(make_plan(requested))[2], before[2]);
}

TEST(Plan, PackagesOnAnImageAreALayerRightAboveIt) {
  Lock lock = lock_with(1, 1000);
  lock.base = LockedBase{
      .manifest = Digest::of("manifest"),
      .config = {std::string(kConfigType), Digest::of("config"), 9},
      .layers = {{{std::string(kLayerGzipType), Digest::of("blob"), 9}, Digest::of("tar"), 0, {}}},
      .interpreter = "/usr/bin/python3.11",
      .glibc = "2.36"};
  const std::vector<FilesPart> files = {{"project files", {}, Digest::of("a")}};
  const Plan before = make_plan(lock, files);
  lock.debs = {{"less", "1", "amd64", "pool/l.deb", 1, Digest::of("less")}};
  const Plan plan = make_plan(lock, files);
  ASSERT_EQ(plan.steps.size(), before.steps.size() + 1);
  EXPECT_EQ(plan.steps[1].kind, Step::Kind::system);
  EXPECT_EQ(plan.steps[1].title, "1 Debian package");
  EXPECT_EQ(plan.steps[0].key, before.steps[0].key);
  EXPECT_EQ(plan.steps[2].key, before.steps[1].key) << "the environment hangs on Python alone";
  EXPECT_NE(plan.steps.back().key, before.steps.back().key) << "its folders may be the packages'";
  Lock other = lock;
  other.debs[0].digest = Digest::of("more");
  EXPECT_NE(make_plan(other).steps[1].key, plan.steps[1].key);
  other = lock;
  other.base->layers[0].blob.digest = Digest::of("another");
  EXPECT_NE(make_plan(other).steps[1].key, plan.steps[1].key);
}

TEST(Plan, WithoutPythonOnlyTheBase) {
  Lock lock = lock_with(0, 0);
  lock.python.clear();
  EXPECT_EQ(make_plan(lock).steps.size(), 1U);
}

TEST(Plan, PutsTheProjectsFilesOnTop) {
  Lock lock;
  lock.python = "3.11.2";
  const std::vector<FilesPart> files = {{"project files at /data", {}, Digest::of("a")},
                                        {"project files", {}, Digest::of("b")}};
  const std::vector<Digest> below = keys(make_plan(lock));
  const std::vector<Digest> all = keys(make_plan(lock, files));
  ASSERT_EQ(all.size(), below.size() + 2);
  EXPECT_TRUE(std::equal(below.begin(), below.end(), all.begin()));
  EXPECT_EQ(make_plan(lock, files).steps.back().title, "project files");

  std::vector<FilesPart> changed = files;
  changed[1].digest = Digest::of("c");
  const std::vector<Digest> after = keys(make_plan(lock, changed));
  EXPECT_TRUE(std::equal(all.begin(), all.end() - 1, after.begin()));
  EXPECT_NE(after.back(), all.back());

  lock.suite = "trixie";  // another base, whose folders may be others
  EXPECT_NE(keys(make_plan(lock, files)).back(), all.back());
}

}  // namespace
}  // namespace mlenv
