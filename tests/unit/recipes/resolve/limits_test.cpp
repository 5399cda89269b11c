#include "recipes/resolve/limits.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

LockedWheel limited_wheel(const std::string& name, const std::string& version) {
  return {.name = name,
          .version = version,
          .file = name + "-" + version + "-py3-none-any.whl",
          .size_bytes = 1,
          .digest = Digest::of(name + version)};
}

WheelResolution with_wheels(std::vector<LockedWheel> wheels) {
  WheelResolution found;
  found.wheels = std::move(wheels);
  return found;
}

Recipe limited_recipe(const std::string& rest) {
  return parse_recipe("name: x\nbase: debian:bookworm\n" + rest, "r.yaml");
}

/// An index whose numpy is 2 until a constraint says otherwise.
struct NumpyIndex {
  Strings asked{};
  bool has_older = true;
  bool fails = false;

  FindWheels find() {
    return [this](const WheelRequest& request) -> WheelAnswer {
      for (const std::string& one : request.limits) asked.push_back(one);
      if (fails) throw failure("build-failed", "no compiler");
      if (!has_older) return Conflict{};
      return with_wheels({limited_wheel("numpy", "1.26.4"), limited_wheel("torch", "2.0.1")});
    };
  }
};

WheelResolution held(const Recipe& recipe, NumpyIndex& index) {
  WheelRequest request;
  request.recipe = &recipe;
  return std::get<WheelResolution>(within_limits(
      request, with_wheels({limited_wheel("numpy", "2.4.6"), limited_wheel("torch", "2.0.1")}),
      index.find()));
}

TEST(Limits, FindPackagesThatDoNotWorkTogether) {
  EXPECT_TRUE(
      limit_faults({limited_wheel("numpy", "2.4.6"), limited_wheel("torch", "2.3.0")}).empty());
  EXPECT_TRUE(
      limit_faults({limited_wheel("numpy", "1.26.4"), limited_wheel("torch", "2.0.1")}).empty());
  EXPECT_TRUE(limit_faults({limited_wheel("torch", "2.0.1")}).empty());
  const auto faults =
      limit_faults({limited_wheel("numpy", "2.4.6"), limited_wheel("pandas", "2.0.3"),
                    limited_wheel("protobuf", "4.25.1"), limited_wheel("tensorflow", "2.8.0")});
  Strings found;
  for (const LimitFault& one : faults) {
    found.push_back(one.package + " " + one.limit->requirement());
  }
  EXPECT_EQ(found, (Strings{"tensorflow 2.8.0 numpy<1.24", "pandas 2.0.3 numpy<2",
                            "tensorflow 2.8.0 protobuf<3.20"}));
}

TEST(Limits, AnOlderVersionIsTakenWhereTheRecipeLeavesItOpen) {
  const Recipe recipe = limited_recipe("framework: pytorch==2.0.1\npackages: [numpy]\n");
  NumpyIndex index;
  const WheelResolution found = held(recipe, index);
  EXPECT_EQ(index.asked, Strings{"numpy<2"});
  EXPECT_EQ(found.limits, Strings{"numpy<2"});
  EXPECT_EQ(found.limit_notes,
            Strings{"`numpy<2` is held to, 1.26.4: torch 2.0.1 is built for NumPy 1 "
                    "(`RuntimeError: Numpy is not available`)"});
  EXPECT_TRUE(limit_faults(found.wheels).empty());
}

TEST(Limits, WhatTheRecipeAsksForStaysWithTheLineThatMendsIt) {
  const Recipe recipe = limited_recipe("framework: pytorch==2.0.1\npackages: [numpy==2.4.6]\n");
  NumpyIndex index;
  index.has_older = false;
  const WheelResolution found = held(recipe, index);
  EXPECT_TRUE(found.limits.empty());
  EXPECT_EQ(found.wheels.front().version, "2.4.6");
  EXPECT_EQ(found.limit_notes,
            Strings{"torch 2.0.1 is built for NumPy 1 (`RuntimeError: Numpy is not available`), "
                    "and does not work with numpy 2.4.6: write `numpy<2` in place of "
                    "`numpy==2.4.6` (r.yaml:4)"});
}

TEST(Limits, WhereTheOtherHasToStayThePackageMoves) {
  const Recipe recipe = limited_recipe("framework: pytorch\npackages: [numpy==2.4.6]\n");
  Strings asked;
  const FindWheels find = [&](const WheelRequest& request) -> WheelAnswer {
    asked = request.limits;
    if (request.limits != Strings{"torch>=2.3"}) return Conflict{};
    return with_wheels({limited_wheel("numpy", "2.4.6"), limited_wheel("torch", "2.11.0")});
  };
  WheelRequest request;
  request.recipe = &recipe;
  const auto found = std::get<WheelResolution>(within_limits(
      request, with_wheels({limited_wheel("numpy", "2.4.6"), limited_wheel("torch", "2.0.1")}),
      find));
  EXPECT_EQ(found.limits, Strings{"torch>=2.3"});
  EXPECT_EQ(
      found.limit_notes,
      Strings{"`torch>=2.3` is held to, 2.11.0: torch 2.0.1 is built for NumPy 1 "
              "(`RuntimeError: Numpy is not available`), and does not work with numpy 2.4.6"});
  const LimitFault old = limit_faults({limited_wheel("ipython", "8.23.0"),
                                       limited_wheel("typing-extensions", "4.5.0")})
                             .at(0);
  EXPECT_EQ(old.older(), "ipython<8.23");
}

TEST(Limits, ABuildThatFailsIsNoAnswer) {
  const Recipe recipe = limited_recipe("framework: pytorch==2.0.1\n");
  NumpyIndex index;
  index.fails = true;
  const WheelResolution found = held(recipe, index);
  EXPECT_EQ(found.wheels.front().version, "2.4.6");
  ASSERT_EQ(found.limit_notes.size(), 1U);
  EXPECT_TRUE(found.limit_notes.front().ends_with(
      "`constraints: [\"numpy<2\"]` has mlenv say what stands against an older one"))
      << found.limit_notes.front();
}

}  // namespace
}  // namespace mlenv
