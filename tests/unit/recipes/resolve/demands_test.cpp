// What a recipe's driver, gpus and libraries make of a small world of wheels, whose versions are
// those of the Python index in November 2026.
#include "recipes/resolve/demands.hpp"

#include <gtest/gtest.h>

#include "recipes/resolve/cuda.hpp"
#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

struct Build {
  std::string torch;
  std::string cuda;
  std::string cudnn;
  std::string nccl;
};
const std::vector<Build> kWorld = {{"2.15.0", "13.2", "9.26.0.51", "2.30.7"},
                                   {"2.14.1", "13.0", "9.24.0.43", "2.30.7"},
                                   {"2.10.0", "12.8", "9.10.2.21", "2.27.5"},
                                   {"2.7.1", "12.6", "9.5.1.17", "2.26.2"}};

LockedWheel found_wheel(const std::string& name, const std::string& version) {
  return {name, version, name + "-" + version + "-py3-none-any.whl", 1, Digest::of(name + version)};
}

WheelResolution resolution_of(const Build& build) {
  const bool old = build.cuda.starts_with("12");
  WheelResolution out;
  out.wheels = {
      found_wheel(old ? "nvidia-cuda-runtime-cu12" : "nvidia-cuda-runtime", build.cuda + ".1"),
      found_wheel(old ? "nvidia-cudnn-cu12" : "nvidia-cudnn-cu13", build.cudnn),
      found_wheel(old ? "nvidia-nccl-cu12" : "nvidia-nccl-cu13", build.nccl),
      found_wheel("torch", build.torch)};
  out.cuda = std::get<0>(locked_cuda(out.wheels));
  return out;
}

/// The newest build that the recipe's `cuda`, `libraries` and framework allow.
WheelAnswer find(const WheelRequest& request) {
  const Recipe& recipe = *request.recipe;
  const std::string& framework = recipe.framework->text;
  for (const Build& build : kWorld) {
    const std::string cuda = recipe.cuda ? recipe.cuda->text : build.cuda;
    const bool of_release = build.cuda == cuda || build.cuda.starts_with(cuda + '.');
    const bool of_framework = version_satisfies(build.torch, framework.substr(5));
    bool of_libraries = true;
    for (const RecipeLibrary& one : recipe.libraries) {
      const std::string& found = one.name == "nccl" ? build.nccl : build.cudnn;
      of_libraries = of_libraries && version_satisfies(found, one.specifier());
    }
    if (of_release && of_framework && of_libraries) return resolution_of(build);
  }
  return Conflict{"none", {}, "", ""};
}

struct Outcome {
  std::optional<Conflict> conflict;
  WheelAnswer answer;
};

Outcome asked_outcome(const std::string& rest) {
  const Recipe recipe = parse_recipe("name: a\nbase: debian:bookworm\n" + rest, "r.yaml");
  WheelRequest request;
  request.recipe = &recipe;
  Outcome out;
  out.answer = find(request);
  out.conflict = demand_conflict(request, out.answer, find);
  if (auto* found = std::get_if<WheelResolution>(&out.answer)) describe_cuda(recipe, *found);
  return out;
}

LockedCuda cuda_of(const Outcome& outcome) {
  EXPECT_FALSE(outcome.conflict) << outcome.conflict->headline;
  return *std::get<WheelResolution>(outcome.answer).cuda;
}

Conflict conflict_of(const std::string& rest) {
  const Outcome outcome = asked_outcome(rest);
  EXPECT_TRUE(outcome.conflict) << rest;
  return outcome.conflict.value_or(Conflict{});
}

TEST(Demands, AreDescribedWhereTheyAreMet) {
  const LockedCuda plain = cuda_of(asked_outcome("framework: torch\n"));
  EXPECT_EQ(plain, (LockedCuda{"13.2", "580", "", "", {}}));
  const LockedCuda cuda =
      cuda_of(asked_outcome("framework: torch\ndriver: \">=580\"\ngpus: [sm_89, sm_121]\n"));
  EXPECT_EQ(cuda.min_driver, "580");
  EXPECT_EQ(cuda.cudnn, "9.26.0.51");
  EXPECT_EQ(cuda.nccl, "2.30.7");
  EXPECT_EQ(cuda.architectures,
            (std::vector<std::string>{"sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"}));
}

TEST(Demands, AnOldDriverIsToldTheNewestBuildThatItRuns) {
  const Conflict conflict = conflict_of("framework: torch\ndriver: \">=535\"\n");
  EXPECT_EQ(conflict.headline, "CUDA 13.2 does not run with driver 535");
  EXPECT_EQ(conflict.facts,
            (std::vector<std::string>{"r.yaml:4:9: drivers from 535 on must be able to run it\n"
                                      "    driver: \">=535\"\n"
                                      "            ^",
                                      "torch 2.15.0 for CUDA 13.2 runs with drivers from 580 on"}));
  EXPECT_EQ(conflict.hint,
            "write `cuda: \"12.8\"`, which locks torch 2.10.0 for CUDA 12.8 and runs with drivers "
            "from 525.60.13 on");
}

TEST(Demands, ADriverBelowEveryFloorIsToldWhatItWouldTake) {
  for (const std::string text : {"driver: \">=525\"\n", "driver: \">=400\"\n"}) {
    const Conflict conflict = conflict_of("framework: torch>=2.1\n" + text);
    EXPECT_EQ(conflict.hint,
              "no other CUDA release fits the recipe; write `driver: \">=580\"` and update the "
              "drivers, or loosen the framework's version");
  }
  const Conflict bound = conflict_of("framework: torch>=2.11\ndriver: \">=535\"\n");
  EXPECT_TRUE(bound.hint.starts_with("no other CUDA release fits the recipe"));
}

TEST(Demands, GpusChooseTheBuildThatHoldsCodeForThem) {
  const Conflict volta = conflict_of("framework: torch\ngpus: [sm_90, sm_70]\n");
  EXPECT_EQ(volta.headline, "the recipe's wheels hold no code for sm_70");
  EXPECT_EQ(volta.facts.back(),
            "torch 2.15.0 for CUDA 13.2 holds code for sm_75 sm_80 sm_86 sm_90 sm_100 sm_120");
  EXPECT_EQ(volta.hint,
            "write `cuda: \"12.8\"`, which locks torch 2.10.0 for CUDA 12.8 (code for sm_70 "
            "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120) and runs with drivers from 525.60.13 on");
  const Conflict pascal = conflict_of("framework: torch\ngpus: [sm_60]\n");
  EXPECT_TRUE(pascal.hint.starts_with("write `cuda: \"12.6\"`, which locks torch 2.7.1"));
  // What no build holds code for.
  const Conflict both = conflict_of("framework: torch\ngpus: [sm_60, sm_120]\n");
  EXPECT_TRUE(both.hint.starts_with("leave out `sm_60`")) << both.hint;
  const Conflict blackwell = conflict_of("framework: torch\ncuda: \"12.6\"\ngpus: [sm_100]\n");
  EXPECT_TRUE(blackwell.hint.starts_with("write `cuda: \"13.2\"`")) << blackwell.hint;
}

TEST(Demands, LibrariesThatCannotBeHadAreNamed) {
  EXPECT_EQ(cuda_of(asked_outcome("framework: torch\nlibraries: {cudnn: \"9.5\"}\n")).release,
            "12.6");
  const Conflict conflict =
      conflict_of("framework: torch>=2.11\nlibraries: {nccl: \">=2\", cudnn: \"8.*\"}\n");
  EXPECT_EQ(conflict.headline,
            "the Python indexes have no set of wheels with the libraries asked for");
  EXPECT_EQ(conflict.facts,
            (std::vector<std::string>{
                "r.yaml:4:33: the recipe asks for cuDNN 8.*\n"
                "    libraries: {nccl: \">=2\", cudnn: \"8.*\"}\n"
                "                                    ^",
                "without it the recipe gets torch 2.15.0 for CUDA 13.2, and cuDNN 9.26.0.51"}));
  const Conflict absent = conflict_of("framework: torch\nlibraries: {nvshmem: \">=1\"}\n");
  EXPECT_EQ(absent.headline, "the recipe's wheels hold no NVSHMEM");
}

TEST(Demands, TheCompilerComesWithTheReleaseThatHasOne) {
  const Conflict conflict =
      conflict_of("framework: torch\ncuda: \"12.6\"\nlibraries: {nvcc: true}\n");
  EXPECT_EQ(conflict.headline, "CUDA 12.6 has no compiler among the Python packages");
  EXPECT_TRUE(conflict.hint.starts_with("write `cuda: \"13.2\"`")) << conflict.hint;

  const Recipe recipe = parse_recipe(
      "name: a\nbase: debian:bookworm\nframework: torch\nlibraries: {nvcc: true}\n", "r.yaml");
  WheelRequest request;
  request.recipe = &recipe;
  WheelRequest second;
  (void)with_compiler(request, find(request), [&](const WheelRequest& again) {
    second = again;
    return find(again);
  });
  EXPECT_EQ(second.compiler, "13.2");
  EXPECT_EQ(second.kept.size(), 4U);
  UvQuestion question;
  add_compiler(question, second.compiler);
  EXPECT_EQ(question.requirements.front(), "cuda-toolkit[nvcc,cccl,cudart]==13.2.*");
}

TEST(Demands, LibrariesAreConstraintsForEveryMajor) {
  const Recipe recipe = parse_recipe(
      "name: a\nbase: debian:bookworm\nframework: pytorch\nlibraries: {cudnn: 9.5}\n", "r.yaml");
  EXPECT_EQ(framework_requirements(recipe).constraints,
            (std::vector<std::string>{"nvidia-cudnn-cu11==9.5.*", "nvidia-cudnn-cu12==9.5.*",
                                      "nvidia-cudnn-cu13==9.5.*"}));
}

}  // namespace
}  // namespace mlenv
