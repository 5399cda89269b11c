#include "runner/check/suggest.hpp"

#include <gtest/gtest.h>

#include "tests/support/strings.hpp"
#include "tests/unit/runner/check/pair.hpp"

namespace mlenv {
namespace {

Recipe debian_recipe(const std::string& rest) {
  return parse_recipe("name: x\nbase: debian:bookworm\n" + rest, "r.yaml");
}

/// A lock of one build of a framework, on a host with one GPU.
test::Pair pair_of(const FrameworkBuild& build, const Strings& code, const std::string& gpu_name,
                   const std::string& capability, const std::string& driver) {
  test::Pair pair = test::torch_on_h100();
  pair.image.kind = "lock";
  pair.image.frameworks = known(std::vector<FrameworkBuild>{build}, "test");
  pair.image.cuda_runtimes = known(std::vector<FoundLibrary>{{"", build.cuda}}, "test");
  pair.image.device_code = known(std::vector<DeviceLibrary>{{build.name, code, true}}, "test");
  pair.host.gpus = known(std::vector<Gpu>{test::gpu(0, gpu_name, capability)}, "test");
  pair.host.nvidia.kernel_driver = known(driver, "test");
  pair.host.nvidia.user_driver = known(driver, "test");
  pair.host.nvidia.cuda_version = unknown<std::string>("test");
  return pair;
}

const FrameworkBuild kTorch215{"torch", "2.15.0", "13.2"};
const Strings kNewCode = {"sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"};

std::vector<Proposal> proposed(const Recipe& recipe, const std::vector<test::Pair>& pairs,
                               const Demand& demand = {}) {
  std::vector<OnHost> now;
  for (const test::Pair& one : pairs) now.push_back({&one.image, &one.host});
  return proposals(recipe, now, demand);
}

TEST(Suggest, ADriverThatIsTooOldGetsABuildOfTheOlderMajor) {
  const auto pair = pair_of(kTorch215, kNewCode, "NVIDIA A100", "8.0", "535.183.06");
  EXPECT_FALSE(serves(pair.verdict(), {}));
  const auto all = proposed(debian_recipe("framework: pytorch\n"), {pair});
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().change, (RecipeChange{.cuda = "12.8"}));
  EXPECT_EQ(all.front().build, "torch 2.10 for CUDA 12.8");
  for (const Proposal& one : all) EXPECT_FALSE(one.change.cuda.starts_with("13")) << one.build;
}

TEST(Suggest, APinnedFrameworkGetsTheNearestVersionThatRuns) {
  const auto pair = pair_of(kTorch215, kNewCode, "NVIDIA A100", "8.0", "535.183.06");
  const auto all = proposed(debian_recipe("framework: pytorch==2.15.0\n"), {pair});
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().change, (RecipeChange{.framework = "==2.10.*", .cuda = "12.8"}));
}

TEST(Suggest, OldGpusGetBuildsWithCodeForThem) {
  const auto pascal = pair_of(kTorch215, kNewCode, "Tesla P100", "6.0", "580.95.05");
  const auto all = proposed(debian_recipe("framework: pytorch\n"), {pascal});
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().build, "torch 2.7 for CUDA 12.6");
  const auto volta = pair_of(kTorch215, kNewCode, "Tesla V100", "7.0", "535.183.06");
  EXPECT_EQ(proposed(debian_recipe("framework: pytorch\n"), {volta}).front().build,
            "torch 2.10 for CUDA 12.8");
}

TEST(Suggest, NewGpusGetTheNearestNewerVersion) {
  const auto pair = pair_of({"torch", "2.6.0", "12.4"},
                            {"sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"},
                            "NVIDIA B200", "10.0", "590.48.01");
  EXPECT_EQ(proposed(debian_recipe("framework: pytorch==2.6.0\n"), {pair}).front().change,
            (RecipeChange{.framework = "==2.8.*", .cuda = "12.8"}));
}

TEST(Suggest, JaxGetsItsPluginOfTheOtherMajor) {
  const auto pair = pair_of({"jax", "0.12.0", "13"}, {"sm_75", "sm_80", "compute_120"},
                            "NVIDIA A100", "8.0", "535.183.06");
  EXPECT_EQ(proposed(debian_recipe("framework: jax\ncuda: \"13\"\n"), {pair}).front().change,
            (RecipeChange{.cuda = "12"}));
}

TEST(Suggest, OneRecipeForAFleet) {
  const auto ampere = pair_of(kTorch215, kNewCode, "NVIDIA A100", "8.0", "535.183.06");
  const auto pascal = pair_of(kTorch215, kNewCode, "Tesla P100", "6.0", "580.95.05");
  const auto recipe = debian_recipe("framework: pytorch\n");
  const auto both = proposed(recipe, {ampere, pascal});
  ASSERT_FALSE(both.empty());
  EXPECT_EQ(both.front().count(), 2U);
  EXPECT_EQ(both.front().build, "torch 2.7 for CUDA 12.6");
  // No build has code for both; as many as can be.
  const auto blackwell = pair_of(kTorch215, kNewCode, "NVIDIA B200", "10.0", "570.124.06");
  const auto three = proposed(recipe, {ampere, pascal, blackwell});
  ASSERT_FALSE(three.empty());
  EXPECT_EQ(three.front().count(), 2U);
}

TEST(Suggest, DemandsOfTheRecipeBecomeTheHosts) {
  auto pair =
      pair_of({"torch", "2.10.0", "12.8"}, {"sm_70", "sm_80"}, "Tesla V100", "7.0", "535.183.06");
  pair.image.oldest_driver = known<std::string>("580", "the recipe's `driver`");
  pair.image.gpus = known(Strings{"sm_80"}, "the recipe's `gpus`");
  const auto all =
      proposed(debian_recipe("framework: pytorch\ndriver: \">=580\"\ngpus: [sm_80]\n"), {pair});
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().change, (RecipeChange{.driver = ">=535.183.06", .gpus = {"sm_70"}}));
}

TEST(Suggest, WithoutCudaComesLastAndOnlyWhereNoHostHasAGpu) {
  auto pair = pair_of(kTorch215, kNewCode, "NVIDIA A100", "8.0", "580.95.05");
  pair.host.gpus = known(std::vector<Gpu>{}, "test");
  pair.host.nvidia.kernel_driver = known<std::string>("none", "test");
  pair.host.nvidia.pci_devices = known(Strings{}, "test");
  const auto all =
      proposed(debian_recipe("framework: pytorch\ndriver: \">=580\"\n"), {pair}, {{}, false, true});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().change, (RecipeChange{.cuda = "cpu", .no_demands = true}));
}

TEST(Suggest, NothingWhereTheHostIsAtFaultAlone) {
  auto pair = pair_of(kTorch215, kNewCode, "NVIDIA A100", "8.0", "595.58.03");
  pair.host.nvidia.kernel_driver = known<std::string>("none", "test");
  EXPECT_FALSE(serves(pair.verdict(), {}));
  EXPECT_TRUE(proposed(debian_recipe("framework: pytorch\n"), {pair}).empty());
}

TEST(Suggest, DriversThatWouldDo) {
  const auto recipe = debian_recipe("framework: pytorch\n");
  const auto ampere = pair_of(kTorch215, kNewCode, "NVIDIA A100", "8.0", "470.82.01");
  EXPECT_EQ(driver_that_runs({&ampere.image, &ampere.host}, {}), "580");
  const auto own = driver_remedy(recipe, {&ampere.image, &ampere.host}, {});
  ASSERT_TRUE(own);
  EXPECT_EQ(own->driver, "580");
  EXPECT_FALSE(own->with);
  // No driver brings back code; an older build has it.
  const auto pascal = pair_of(kTorch215, kNewCode, "Tesla P100", "6.0", "390.157");
  EXPECT_FALSE(driver_that_runs({&pascal.image, &pascal.host}, {}));
  const auto other = driver_remedy(recipe, {&pascal.image, &pascal.host}, {});
  ASSERT_TRUE(other && other->with);
  EXPECT_TRUE(other->with->change.cuda.starts_with("1")) << other->with->change.cuda;
  EXPECT_LT(std::stoi(other->driver), 580);
}

TEST(Suggest, BuildsWithoutWheelsForThePythonAreLeftOut) {
  const auto pair = pair_of(kTorch215, kNewCode, "Tesla V100", "7.0", "470.256.02");
  const auto on = [&](const std::string& python) {
    Strings builds;
    for (const Proposal& one :
         proposed(debian_recipe("python: \"" + python + "\"\nframework: pytorch\n"), {pair})) {
      builds.push_back(one.build);
    }
    return builds;
  };
  EXPECT_EQ(on("3.11"), (Strings{"torch 2.0 for CUDA 11.7", "torch 1.13 for CUDA 11.7"}));
  EXPECT_TRUE(on("3.13").empty());
}

TEST(Suggest, GpusThatABuildServes) {
  const auto pair = pair_of(kTorch215, kNewCode, "NVIDIA A100", "8.0", "580.95.05");
  EXPECT_EQ(served_gpus(pair.image), (Strings{"7.5", "8.0", "8.6", "8.7", "8.8", "8.9", "9.0",
                                              "10.0", "10.3", "10.7", "12.0", "12.1"}));
  auto none = pair;
  none.image.device_code = unknown<std::vector<DeviceLibrary>>("test");
  EXPECT_TRUE(served_gpus(none.image).empty());
}

}  // namespace
}  // namespace mlenv
