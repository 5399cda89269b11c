#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/lock.hpp"
#include "recipes/recipe.hpp"

namespace mlenv {
namespace {

Recipe torch_with(const std::string& rest) {
  return parse_recipe("name: a\nbase: debian:bookworm\nframework: pytorch\n" + rest, "r.yaml");
}

/// The first line of what is wrong; empty when nothing is.
std::string cuda_mistake(const std::string& rest) {
  try {
    (void)torch_with(rest);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "recipe-invalid");
    const std::string text = error.frames().front();
    return text.substr(0, text.find('\n'));
  }
}

TEST(RecipeCuda, ReadsDriverGpusAndLibraries) {
  const Recipe recipe = torch_with(
      "driver: \">= 525.60.13\"\ngpus: [sm_90, sm_80, sm_90]\n"
      "libraries: {nccl: \">=2.28\", cudnn: \"9.*\", nvcc: true, cublas: 13.1}\n");
  EXPECT_EQ(recipe.oldest_driver(), "525.60.13");
  ASSERT_EQ(recipe.libraries.size(), 3U);
  EXPECT_EQ(recipe.libraries[0].specifier(), ">=2.28");
  EXPECT_EQ(recipe.libraries[1].specifier(), "==9.*");
  EXPECT_EQ(recipe.libraries[2].specifier(), "==13.1.*");
  EXPECT_TRUE(recipe.compiler);
  EXPECT_TRUE(recipe.demands_of_cuda());
  const Request request = request_of(recipe);
  EXPECT_EQ(request.driver, ">= 525.60.13");
  EXPECT_EQ(request.gpus, (std::vector<std::string>{"sm_80", "sm_90"}));
  EXPECT_EQ(request.libraries,
            (std::vector<std::string>{"cublas 13.1", "cudnn 9.*", "nccl >=2.28", "nvcc"}));
}

TEST(RecipeCuda, NothingAskedIsAsIfTheKeysWereAbsent) {
  const Recipe recipe = torch_with("driver:\ngpus: []\nlibraries: {nvcc: false}\n");
  EXPECT_FALSE(recipe.demands_of_cuda());
  EXPECT_EQ(request_of(recipe), request_of(torch_with("")));
}

TEST(RecipeCuda, MistakesSayWhatWasMeant) {
  struct Case {
    std::string text;
    std::string mistake;
  };
  const std::vector<Case> cases = {
      {"driver: 580\n",
       "r.yaml:4:9: `driver` is the oldest driver that must run it; write "
       "`\">=580\"`"},
      {"driver: new\n",
       "r.yaml:4:9: `new` is not an oldest driver; write one, as in `\">=580\"` "
       "or `\">=525.60.13\"`"},
      {"driver: \">=1.2.3.4\"\n",
       "r.yaml:4:9: `>=1.2.3.4` is not an oldest driver; write one, as "
       "in `\">=580\"` or `\">=525.60.13\"`"},
      {"driver: [\">=580\"]\n", "r.yaml:4:9: `driver` is a single text, as in `\">=580\"`"},
      {"gpus: sm_90\n", "r.yaml:4:7: `gpus` is a list, as in `[sm_80, sm_90]`"},
      {"gpus: [sm_80, H100]\n",
       "r.yaml:4:15: `H100` is not a GPU architecture; did you mean `sm_90`?"},
      {"gpus: [sm_90a]\n", "r.yaml:4:8: `sm_90a` is not a GPU architecture; did you mean `sm_90`?"},
      {"gpus: [all]\n",
       "r.yaml:4:8: `all` is not a GPU architecture; write its compute "
       "capability, as in `sm_90` for 9.0"},
      {"libraries: {cudn: \"9.*\"}\n", "r.yaml:4:13: unknown key `cudn`; did you mean `cudnn`?"},
      {"libraries: [cudnn]\n", "r.yaml:4:12: `libraries` is a map: lines of `key: value`"},
      {"libraries: {cudnn: true}\n", "r.yaml:4:20: `cudnn` is a version, as in `\"9.*\"`"},
      {"libraries: {cudnn: newest}\n",
       "r.yaml:4:20: `newest` is not a version; write one, as in "
       "`\"9.*\"` or `\">=2.28\"`"},
      {"libraries: {cudnn: \"[a]>=9\"}\n",
       "r.yaml:4:20: `[a]>=9` is not a version; write one, as "
       "in `\"9.*\"` or `\">=2.28\"`"},
      {"libraries: {cudnn: }\n", "r.yaml:4:20: `cudnn` has no value; write one, as in `\"9.*\"`"},
      {"libraries: {nvcc: \"13.0\"}\n",
       "r.yaml:4:19: `nvcc` is `true` or `false`, without quotes: "
       "its version is the CUDA release's"},
      {"cuda: cpu\ngpus: [sm_90]\n",
       "r.yaml:5:1: `gpus` is about CUDA, and `cuda: cpu` asks for "
       "none"}};
  for (const Case& one : cases) EXPECT_EQ(cuda_mistake(one.text), one.mistake) << one.text;
  try {
    parse_recipe("name: a\nbase: debian:bookworm\ndriver: \">=580\"\n", "r.yaml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.frames().front().starts_with("r.yaml:3:1: `driver` has nothing to act on"));
  }
}

}  // namespace
}  // namespace mlenv
