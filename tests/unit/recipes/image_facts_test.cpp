#include "recipes/image_facts.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

ImageFacts of_recipe(const std::string& text) {
  return image_facts_of(parse_recipe("name: train\nbase: debian:bookworm\n" + text, "r.yaml"),
                        "linux/amd64");
}

TEST(ImageFactsOfRecipe, WithAnExactFramework) {
  const ImageFacts facts = of_recipe(
      "framework: pytorch==2.9.1\ncuda: \"12.8\"\ndriver: \">=570\"\ngpus: [sm_90]\n"
      "env: {NCCL_DEBUG: INFO, OTHER: x}\n");
  EXPECT_EQ(facts.kind, "recipe");
  EXPECT_EQ(facts.architecture, "amd64");
  ASSERT_TRUE(facts.frameworks);
  EXPECT_EQ(*facts.frameworks, (std::vector<FrameworkBuild>{{"torch", "2.9.1", "12.8"}}));
  ASSERT_TRUE(facts.device_code);
  EXPECT_EQ(facts.device_code->front().code.front(), "sm_70");
  EXPECT_EQ(facts.oldest_driver.value, "570");
  EXPECT_EQ(facts.gpus.value, std::vector<std::string>{"sm_90"});
  EXPECT_EQ(facts.environment, (std::vector<Variable>{{"NCCL_DEBUG", "INFO"}}));
  EXPECT_FALSE(facts.nccl);
  EXPECT_EQ(facts.nccl.source, "known after `mlenv lock`");
}

TEST(ImageFactsOfRecipe, WithoutCuda) {
  const ImageFacts cpu = of_recipe("framework: jax\ncuda: cpu\n");
  EXPECT_EQ(*cpu.frameworks, (std::vector<FrameworkBuild>{{"jax", "", "cpu"}}));
  EXPECT_EQ(cpu.cuda_runtimes.value, std::vector<FoundLibrary>{});
  const ImageFacts none = of_recipe("system: [git]\n");
  EXPECT_EQ(none.frameworks.value, std::vector<FrameworkBuild>{});
  EXPECT_EQ(none.oldest_driver.value, "");
  // What the default wheels were built for only the index tells.
  EXPECT_FALSE(of_recipe("framework: pytorch\n").frameworks);
}

Lock torch_lock() {
  Lock lock;
  lock.settings.name = "train";
  const Digest digest = Digest::of(std::string_view{});
  lock.wheels = {{"nvidia-cuda-runtime-cu12", "12.8.90", "x.whl", 1, digest, false},
                 {"nvidia-nccl-cu12", "2.27.5", "x.whl", 1, digest, false},
                 {"torch", "2.9.1", "x.whl", 1, digest, true}};
  lock.cuda = LockedCuda{"12.8", "525.60.13", {}, {}, {}};
  return lock;
}

TEST(ImageFactsOfLock, FromItsWheels) {
  const ImageFacts facts = image_facts_of(torch_lock());
  EXPECT_EQ(facts.kind, "lock");
  EXPECT_EQ(*facts.frameworks, (std::vector<FrameworkBuild>{{"torch", "2.9.1", "12.8"}}));
  EXPECT_EQ(*facts.cuda_runtimes, (std::vector<FoundLibrary>{{"", "12.8.90"}}));
  EXPECT_EQ(*facts.nccl, (std::vector<FoundLibrary>{{"", "2.27.5"}}));
  EXPECT_EQ(facts.cudnn.value, std::vector<FoundLibrary>{});
  ASSERT_TRUE(facts.device_code);
  EXPECT_EQ(facts.device_code->front().path, "torch");
  EXPECT_TRUE(facts.device_code->front().decides);
  EXPECT_EQ(facts.oldest_driver.value, "");
  EXPECT_FALSE(facts.unpacked_bytes);
}

TEST(ImageFactsOfLock, TheKernelThatItsCLibraryAsksFor) {
  Lock lock = torch_lock();
  EXPECT_FALSE(image_facts_of(lock).least_kernel);
  lock.debs.push_back(
      {"libc6", "2.36-9+deb12u10", "amd64", "pool/x.deb", 1, lock.wheels[0].digest});
  EXPECT_EQ(image_facts_of(lock).least_kernel.value, "3.2.0");
  lock.platform = "linux/arm64";
  EXPECT_EQ(image_facts_of(lock).least_kernel.value, "3.7.0");
  // It comes on top of what nobody knows.
  const Digest digest = Digest::of(std::string_view{});
  lock.base = LockedBase{digest, Descriptor{"", digest, 0}, {}, "", ""};
  EXPECT_FALSE(image_facts_of(lock).least_kernel);
}

TEST(ImageFactsOfLock, OfACpuBuild) {
  Lock lock = torch_lock();
  lock.wheels.erase(lock.wheels.begin(), lock.wheels.begin() + 2);
  lock.cuda.reset();
  const ImageFacts facts = image_facts_of(lock);
  EXPECT_EQ(facts.frameworks->front().cuda, "cpu");
  EXPECT_EQ(facts.device_code.value, std::vector<DeviceLibrary>{});
}

TEST(ImageFactsOfLock, JaxsCodeIsItsPlugins) {
  Lock lock = torch_lock();
  const Digest digest = Digest::of(std::string_view{});
  lock.wheels = {{"jax", "0.10.2", "jax-0.10.2-py3-none-any.whl", 1, digest, false},
                 {"jax-cuda12-pjrt", "0.10.2", "x.whl", 1, digest, false}};
  const ImageFacts facts = image_facts_of(lock);
  ASSERT_TRUE(facts.device_code);
  EXPECT_EQ(facts.device_code->front().path, "jax-cuda12-pjrt");
  EXPECT_EQ(facts.device_code->front().code.front(), "sm_50");
  lock.wheels.pop_back();
  EXPECT_FALSE(image_facts_of(lock).device_code);
}

TEST(ImageFactsOfLock, ProcessorsThatItsWheelsNeed) {
  Lock lock = torch_lock();
  EXPECT_FALSE(image_facts_of(lock).cpu);  // of torch nothing is known
  const Digest digest = Digest::of(std::string_view{});
  lock.wheels.push_back({"numpy", "2.4.6", "x.whl", 1, digest, false});
  lock.wheels.push_back({"jaxlib", "0.10.2", "x.whl", 1, digest, false});
  const ImageFacts facts = image_facts_of(lock);
  ASSERT_TRUE(facts.cpu);
  const std::vector<CpuNeed> expected = {
      {"jaxlib 0.10.2", {"avx"}},
      {"numpy 2.4.6", {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}}};
  EXPECT_EQ(*facts.cpu, expected);
  lock.platform = "linux/arm64";
  EXPECT_FALSE(image_facts_of(lock).cpu);
}

TEST(ImageFactsOfRecipe, ProcessorsThatItsPackagesNeed) {
  const auto cpu = [](const std::string& rest) {
    return image_facts_of(parse_recipe("name: x\nbase: debian:bookworm\n" + rest, "r.yaml"),
                          "linux/amd64")
        .cpu;
  };
  EXPECT_EQ(cpu("framework: tensorflow\n").value, (std::vector<CpuNeed>{{"tensorflow", {"avx"}}}));
  EXPECT_EQ(cpu("packages: [\"numpy==2.4.0\"]\n")->front().who, "numpy 2.4.0");
  EXPECT_FALSE(cpu("packages: [numpy]\n"));  // an older one may be taken
  EXPECT_FALSE(cpu("packages: [\"numpy==2.3.5\"]\n"));
}

TEST(ImageFactsOfLock, ABaseMayBringAnything) {
  Lock lock = torch_lock();
  const Digest digest = Digest::of(std::string_view{});
  lock.base = LockedBase{digest, Descriptor{"", digest, 0}, {}, "", ""};
  lock.wheels.clear();
  lock.cuda.reset();
  const ImageFacts facts = image_facts_of(lock);
  EXPECT_FALSE(facts.frameworks);
  EXPECT_FALSE(facts.cuda_runtimes);
  EXPECT_FALSE(facts.forward_compatibility);
  EXPECT_FALSE(facts.device_code);
}

TEST(ImageFactsOfLock, OfAReleaseThatWasNotRead) {
  Lock lock = torch_lock();
  lock.wheels.back().version = "9.9.0";
  EXPECT_FALSE(image_facts_of(lock).device_code);
  lock = torch_lock();
  lock.platform = "linux/arm64";  // rows were read off wheels for amd64
  EXPECT_FALSE(image_facts_of(lock).device_code);
}

}  // namespace
}  // namespace mlenv
