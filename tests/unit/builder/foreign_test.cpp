#include "builder/foreign.hpp"

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "images/platform.hpp"

namespace mlenv {
namespace {

Lock foreign_lock() {
  Lock lock;
  lock.platform = runs_here("linux/arm64") ? "linux/amd64" : "linux/arm64";
  lock.request.base = "debian:bookworm";
  lock.distribution = "debian";
  lock.suite = "bookworm";
  lock.python = "3.11.2";
  for (const char* name : {"a", "b"}) {
    lock.wheels.push_back(
        {name, "1", std::string(name) + "-1-py3-none-any.whl", 10, Digest::of(name), false});
  }
  return lock;
}

std::vector<Digest> blobs(std::size_t count) {
  std::vector<Digest> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(Digest::of(std::to_string(i)));
  return all;
}

Layer layer_of(const Digest& blob) { return {{std::string(kLayerGzipType), blob, 1}, blob, 0, {}}; }

TEST(Foreign, EachStepGetsItsBlobsAndBytecodeTheRest) {
  const Lock lock = foreign_lock();
  const Plan plan = make_plan(lock);  // base, environment, wheels, bytecode
  ASSERT_EQ(plan.steps.size(), 4U);
  const auto parts = blobs_by_step(plan, lock, blobs(6));
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[0], blobs(1));
  EXPECT_EQ(parts[2], (std::vector<Digest>{blobs(6)[2]}));
  EXPECT_EQ(parts[3].size(), 3U);
  EXPECT_EQ(parts[3].back(), blobs(6).back());
  EXPECT_EQ(blobs_by_step(plan, lock, blobs(3)).back().size(), 0U) << "nothing compiles";
  EXPECT_TRUE(blobs_by_step(plan, lock, blobs(2)).empty());
  EXPECT_TRUE(blobs_by_step(plan, lock, {}).empty());
}

TEST(Foreign, ANumberThatDoesNotFitGivesNothing) {
  Lock lock = foreign_lock();
  lock.settings.bytecode = false;
  EXPECT_EQ(blobs_by_step(make_plan(lock), lock, blobs(3)).size(), 3U);
  EXPECT_TRUE(blobs_by_step(make_plan(lock), lock, blobs(4)).empty());
  const Digest any = Digest::of("any");
  lock.base = LockedBase{.manifest = any,
                         .config = {std::string(kConfigType), any, 1},
                         .layers = {3, layer_of(any)},
                         .interpreter = "/usr/bin/python3.11",
                         .glibc = "2.36"};
  const auto parts = blobs_by_step(make_plan(lock), lock, blobs(5));
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0], blobs(3));
}

TEST(Foreign, SaysWhatWouldHaveToRunAndWhatHelps) {
  const TemporaryFolder folder{temporary_root(), "mlenv-foreign-"};
  Store store{folder.path() / "store"};
  Lock lock = foreign_lock();
  const auto said = [&](const std::vector<std::size_t>& missing) {
    try {
      require_no_programs(lock, make_plan(lock), missing, {}, store);
      return std::string{};
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "foreign-platform");
      return std::string(error.what()) + '\n' + error.hint();
    }
  };
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(said({1, 2}), "") << "environment and wheels are made without";
  const std::string base = said({0, 1, 2, 3});
  for (const std::string& part : {lock.platform, machine_platform(), std::string("dpkg"),
                                  std::string("the bytecode of 2 wheels")}) {
    EXPECT_TRUE(has(base, part)) << base;
  }
  EXPECT_FALSE(has(base, "bytecode: false")) << base;
  EXPECT_TRUE(has(said({3}), "bytecode: false"));
  lock.settings.run = {{{"make"}, false, {}}};
  EXPECT_TRUE(has(said({1}), "`run: make` is executed"));
  lock.platform = machine_platform();
  EXPECT_EQ(said({0, 1, 2, 3}), "");
}

TEST(Foreign, LayersThatAreRecordedStandInForWhatCannotBeMade) {
  Lock lock = foreign_lock();
  const Plan plan = make_plan(lock);
  RunOptions run;
  run.recorded = blobs(4);
  run.find = [](const Digest& blob) -> std::optional<Layer> {
    if (blob == Digest::of("3")) return std::nullopt;
    return layer_of(blob);
  };
  const auto base = recorded_foreign_layers(lock, plan, 0, run);
  ASSERT_TRUE(base);
  EXPECT_EQ(base->at(0).blob.digest, Digest::of("0"));
  EXPECT_FALSE(recorded_foreign_layers(lock, plan, 2, run)) << "wheels are made here";
  EXPECT_FALSE(recorded_foreign_layers(lock, plan, 3, run)) << "not to be had";
  lock.platform = machine_platform();
  EXPECT_FALSE(recorded_foreign_layers(lock, plan, 0, run)) << "made, and then compared";
}

}  // namespace
}  // namespace mlenv
