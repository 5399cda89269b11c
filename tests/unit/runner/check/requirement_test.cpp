#include "runner/check/requirement.hpp"

#include <gtest/gtest.h>

#include "tests/unit/runner/check/pair.hpp"

namespace mlenv {
namespace {

std::string met(std::string_view requirement, const RequirementFacts& facts) {
  switch (requirement_met(requirement, facts)) {
    case Met::yes:
      return "yes";
    case Met::no:
      return "no";
    case Met::unknown:
      return "unknown";
    case Met::not_understood:
      break;
  }
  return "not understood";
}

const RequirementFacts kA100 = {"12.2", "535.183.01", "8.0", {"nvidia", "tesla"}};

TEST(Requirement, Operators) {
  for (const auto& [text, answer] : {std::pair("cuda>=12.2", "yes"),
                                     {"cuda>12.2", "no"},
                                     {"cuda>=12.3", "no"},
                                     {"cuda=12.2", "yes"},
                                     {"cuda!=12.2", "no"},
                                     {"cuda<12.10", "yes"},
                                     {"cuda<=12.1", "no"},
                                     {"driver>=535", "yes"},
                                     {"driver<536", "yes"},
                                     {"driver<535", "no"},
                                     {"arch>=8.0", "yes"},
                                     {"arch>=8.6", "no"}}) {
    EXPECT_EQ(met(text, kA100), answer) << text;
  }
}

TEST(Requirement, BlanksAreOrAndCommasAnd) {
  EXPECT_EQ(met("cuda>=12.8 brand=tesla,driver>=535,driver<536 "
                "brand=nvidia,driver>=535,driver<536",
                kA100),
            "yes");
  EXPECT_EQ(met("cuda>=12.8 brand=tesla,driver>=550,driver<551", kA100), "no");
  EXPECT_EQ(met("cuda>=12.2,arch>=9.0", kA100), "no");
  EXPECT_EQ(met("cuda>=12.8  driver>=535", kA100), "yes");
  EXPECT_EQ(met("", kA100), "yes");
}

TEST(Requirement, ABrandThatMayBeOneOfTwo) {
  EXPECT_EQ(met("brand=tesla", kA100), "unknown");
  EXPECT_EQ(met("brand=geforce", kA100), "no");
  EXPECT_EQ(met("brand=tesla brand=nvidia", kA100), "yes");
}

TEST(Requirement, WhatIsNotKnown) {
  EXPECT_EQ(met("driver>=535", {}), "unknown");
  EXPECT_EQ(met("driver>=535 cuda>=12.0", {"12.4", "", "", {}}), "yes");
  EXPECT_EQ(met("driver>=535,cuda>=12.8", {"12.4", "", "", {}}), "no");
  EXPECT_EQ(met("brand=tesla", {"12.4", "550.1", "8.0", {}}), "unknown");
}

TEST(Requirement, OtherPropertiesAreAbsentAndOtherTextIsNot) {
  EXPECT_EQ(met("gpus>=8", kA100), "yes");
  EXPECT_EQ(met("gpus>=8,cuda>=12.8", kA100), "no");
  EXPECT_EQ(met("cuda", kA100), "not understood");
  EXPECT_EQ(met("cuda>=new", kA100), "not understood");
  EXPECT_EQ(met("cuda!12", kA100), "not understood");
}

TEST(Requirement, BrandsByName) {
  using Set = std::set<std::string>;
  EXPECT_EQ(brands_of("NVIDIA GeForce RTX 4090"), (Set{"geforce", "geforcertx"}));
  EXPECT_EQ(brands_of("NVIDIA GeForce GTX 1080 Ti"), (Set{"geforce"}));
  EXPECT_EQ(brands_of("Tesla V100-SXM2-32GB"), (Set{"tesla"}));
  EXPECT_EQ(brands_of("NVIDIA TITAN RTX"), (Set{"titan", "titanrtx"}));
  EXPECT_EQ(brands_of("Quadro P5000"), (Set{"quadro"}));
  EXPECT_EQ(brands_of("something else"), Set{});
}

test::Pair requiring(std::vector<Variable> environment) {
  test::Pair pair = test::torch_on_h100();
  pair.image.environment = std::move(environment);
  return pair;
}

TEST(RequirementUnmet, EveryVariableMustHold) {
  EXPECT_EQ(requiring({{"NVIDIA_REQUIRE_CUDA", "cuda>=12.8"}}).found(), "");
  EXPECT_EQ(requiring({{"NVIDIA_REQUIRE_CUDA", "cuda>=12.9"}}).found(), "requirement-unmet");
  EXPECT_EQ(requiring({{"NVIDIA_REQUIRE_ARCH", "arch>=10.0"}, {"NVIDIA_REQUIRE_CUDA", "cuda>=12"}})
                .found(),
            "requirement-unmet");
  EXPECT_EQ(requiring({{"NVIDIA_REQUIRE_JETPACK", "l4t>=36"}}).found(), "");
}

TEST(RequirementUnmet, MayBeSwitchedOff) {
  EXPECT_EQ(
      requiring({{"NVIDIA_DISABLE_REQUIRE", "1"}, {"NVIDIA_REQUIRE_CUDA", "cuda>=13"}}).found(),
      "");
  EXPECT_EQ(
      requiring({{"NVIDIA_DISABLE_REQUIRE", "no"}, {"NVIDIA_REQUIRE_CUDA", "cuda>=13"}}).found(),
      "requirement-unmet");
}

TEST(RequirementUnmet, OfOldImagesByTheirVersion) {
  EXPECT_EQ(requiring({{"CUDA_VERSION", "12.8.1"}}).found(), "");
  EXPECT_EQ(requiring({{"CUDA_VERSION", "12.9.0"}}).found(), "requirement-unmet");
}

TEST(RequirementUnmet, ByTheDriversNumberWhereNothingElseTells) {
  test::Pair pair = requiring({{"NVIDIA_REQUIRE_CUDA", "cuda>=12.8"}});
  pair.host.nvidia.cuda_version = unknown<std::string>("not asked");
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "");
}

TEST(RequirementUnmet, NotUnderstoodOrNotKnown) {
  EXPECT_EQ(requiring({{"NVIDIA_REQUIRE_CUDA", "twelve"}}).unjudged(), "requirement-unmet");
  test::Pair pair = requiring({{"NVIDIA_REQUIRE_CUDA", "arch>=9.0"}});
  pair.host.gpus = unknown<std::vector<Gpu>>("NVML hangs");
  EXPECT_NE(pair.unjudged().find("requirement-unmet"), std::string::npos);
  EXPECT_EQ(pair.found(), "");
}

}  // namespace
}  // namespace mlenv
