// What a recipe says of all builds, and of one.
#include "builder/build_settings.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(BuildSettings, WhatIsSaidOfOnePackageGoesFirst) {
  BuildSteering steering;
  steering.constraints = {"setuptools<66"};
  steering.requirements = {{"flash-attn", {"torch", "ninja"}}, {"other", {"numpy"}}};
  steering.env.all = {{"MAX_JOBS", "2"}, {"CC", "gcc"}};
  steering.env.by_name = {{"flash-attn", {{"MAX_JOBS", "1"}}}};
  steering.config_settings.by_name = {{"flash-attn", {{"one", {"a"}}, {"two", {"b", "c"}}}}};
  steering.network = true;

  const BuildSettings flash = build_settings(steering, "flash-attn");
  EXPECT_EQ(flash.constraints, steering.constraints);
  EXPECT_EQ(flash.requirements, (std::vector<std::string>{"torch", "ninja"}));
  EXPECT_EQ(flash.env, (std::map<std::string, std::string>{{"CC", "gcc"}, {"MAX_JOBS", "1"}}));
  EXPECT_EQ(config_settings_json(flash), R"({"one":"a","two":["b","c"]})");
  EXPECT_TRUE(flash.network);

  const BuildSettings plain = build_settings(steering, "six");
  EXPECT_TRUE(plain.requirements.empty());
  EXPECT_EQ(plain.env.at("MAX_JOBS"), "2");
  EXPECT_EQ(config_settings_json(plain), "null");
}

}  // namespace
}  // namespace mlenv
