#include <gtest/gtest.h>

#include "tests/support/from_test.hpp"
#include "tests/support/strings.hpp"
#include "tests/unit/runner/check/pair.hpp"

namespace mlenv {
namespace {

using test::gpu;
using test::Pair;
using test::torch_on_h100;
Pair with_code(Strings code) {
  Pair pair = torch_on_h100();
  pair.image.device_code =
      from_test(std::vector<DeviceLibrary>{{"/v/libtorch_cuda.so", std::move(code), true}});
  return pair;
}

TEST(NoDeviceCode, CubinsRunOnLaterMinorsOfTheirMajor) {
  EXPECT_EQ(with_code({"sm_90"}).found(), "");
  EXPECT_EQ(with_code({"sm_90a"}).found(), "");
  EXPECT_EQ(with_code({"sm_89"}).found(), "no-device-code");
  EXPECT_EQ(with_code({"sm_100"}).found(), "no-device-code");
  EXPECT_EQ(with_code({}).found(), "no-device-code");
  Pair pair = with_code({"sm_80"});
  pair.host.gpus = from_test(std::vector<Gpu>{gpu(0, "NVIDIA L4", "8.9")});
  EXPECT_EQ(pair.found(), "");
  pair = with_code({"sm_90a"});
  pair.host.gpus = from_test(std::vector<Gpu>{gpu(0, "NVIDIA B200", "10.0")});
  const Finding finding = pair.finding("no-device-code");
  EXPECT_EQ(finding.needed, "code for sm_100 in `/v/libtorch_cuda.so`");
  EXPECT_EQ(finding.found, "code for sm_90a, on GPU 0, NVIDIA B200 (compute capability 10.0)");
}

TEST(NoDeviceCode, OfSeveralGpusOneMayBeLeftOut) {
  Pair pair = with_code({"sm_80", "sm_86"});
  pair.host.gpus = from_test(std::vector<Gpu>{gpu(0, "NVIDIA GeForce GTX 1080", "6.1"),
                                              gpu(1, "NVIDIA GeForce RTX 3090", "8.6")});
  EXPECT_EQ(pair.found(), "no-device-code=risks");
  pair.use.gpus = 1;
  EXPECT_EQ(pair.found(), "no-device-code=risks");
  pair.use.gpus = 2;
  EXPECT_EQ(pair.found(), "no-device-code");
}

TEST(NoDeviceCode, ByTheReleaseBeforeTheBuild) {
  Pair pair = torch_on_h100();
  pair.image.device_code = unknown<std::vector<DeviceLibrary>>("known after the build");
  EXPECT_EQ(pair.unjudged(), "no-device-code");
  pair.host.gpus = from_test(std::vector<Gpu>{gpu(0, "Tesla V100-SXM2-32GB", "7.0")});
  EXPECT_EQ(pair.unjudged(), "no-device-code");
  pair.image.frameworks = from_test(std::vector<FrameworkBuild>{{"torch", "2.12.0", "13.0"}});
  test::set_driver(pair.host, "580.65.06", "13.0");
  EXPECT_EQ(pair.found(), "no-device-code");
  EXPECT_EQ(pair.unjudged(), "");
  EXPECT_EQ(pair.finding("no-device-code").remedy,
            "take a build for CUDA 12.9 or older, the last whose code runs on sm_70; `gpus: "
            "[sm_70]` in a "
            "recipe makes sure of it");
}

TEST(NoDeviceCode, NamesTheReleaseThatHasCodeForANewGpu) {
  Pair pair = with_code({"sm_80", "sm_90"});
  pair.host.gpus = from_test(std::vector<Gpu>{gpu(0, "NVIDIA B200", "10.0")});
  EXPECT_EQ(pair.finding("no-device-code").remedy,
            "take a build with code for sm_100; `gpus: [sm_100]` in a recipe makes sure of it");
  pair.image.frameworks = from_test(std::vector<FrameworkBuild>{{"torch", "2.6.0", "12.6"}});
  EXPECT_EQ(
      pair.finding("no-device-code").remedy,
      "take a build for CUDA 12.8 or newer, the first whose code runs on sm_100; `gpus: [sm_100]` "
      "in a recipe makes sure of it");
}

TEST(NoDeviceCode, AGpuThatIsNotKnown) {
  Pair pair = torch_on_h100();
  pair.host.gpus = from_test(std::vector<Gpu>{Gpu{}});
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "no-device-code");
}

TEST(PtxOnly, CompiledAtEachStart) {
  EXPECT_EQ(with_code({"sm_80", "compute_80"}).found(), "ptx-only");
  EXPECT_EQ(with_code({"sm_90", "compute_80"}).found(), "");
  EXPECT_EQ(with_code({"compute_90a"}).found(), "ptx-only");
  EXPECT_EQ(with_code({"compute_100"}).found(), "no-device-code");
}

Pair framework_on(const char* name, const char* version, const char* capability) {
  Pair pair = with_code({"sm_80", "sm_90", "compute_90"});
  pair.image.frameworks = from_test(std::vector<FrameworkBuild>{{name, version, "12.5"}});
  pair.host.gpus = from_test(std::vector<Gpu>{gpu(0, "NVIDIA B200", capability)});
  return pair;
}

TEST(XlaTooOld, AFrameworkThatCompilesHasToKnowTheGpu) {
  EXPECT_EQ(framework_on("jax", "0.4.37", "10.0").found(), "xla-too-old");
  EXPECT_EQ(framework_on("jax", "0.4.38", "10.0").found(), "ptx-only");
  EXPECT_EQ(framework_on("jax", "0.4.30", "9.0").found(), "");
  EXPECT_EQ(framework_on("tensorflow", "2.21.0", "12.0").found(), "xla-too-old");
  EXPECT_EQ(framework_on("tensorflow", "2.22.0", "12.0").found(), "ptx-only");
  EXPECT_EQ(framework_on("torch", "2.4.0", "12.0").found(), "ptx-only");
  EXPECT_EQ(framework_on("jax", "0.4.30", "12.0").finding("xla-too-old").remedy,
            "take jax 0.4.38 or newer (`framework: jax>=0.4.38` in a recipe)");
}

TEST(XlaTooOld, ABuildWithCodeForTheGpuKnowsIt) {
  Pair pair = framework_on("tensorflow", "2.20.0", "12.0");
  pair.image.device_code =
      from_test(std::vector<DeviceLibrary>{{"/v/libtensorflow_cc.so", {"sm_90", "sm_120"}, true}});
  EXPECT_EQ(pair.found(), "");
}

TEST(XlaTooOld, IsKnownBeforeTheBuild) {
  Pair pair = framework_on("tensorflow", "2.20.0", "12.0");
  pair.image.device_code = unknown<std::vector<DeviceLibrary>>("known after the build");
  EXPECT_NE(pair.found().find("xla-too-old"), std::string::npos) << pair.found();
}

TEST(RecipeGpus, OneOfThemMustBeHere) {
  Pair pair = torch_on_h100();
  pair.image.gpus = from_test(Strings{"sm_80", "sm_90"});
  EXPECT_EQ(pair.found(), "");
  pair.image.gpus = from_test(Strings{"sm_80"});
  EXPECT_EQ(pair.found(), "recipe-gpus");
  EXPECT_EQ(pair.finding("recipe-gpus").remedy,
            "add `sm_90` to the recipe's `gpus`, and lock it again");
  pair.host.gpus = from_test(std::vector<Gpu>{gpu(0, "NVIDIA A40", "8.6")});
  EXPECT_EQ(pair.found(), "");
  pair.image.gpus = from_test(Strings{"sm_89"});
  EXPECT_EQ(pair.found(), "recipe-gpus");
  pair.host.gpus = from_test(std::vector<Gpu>{Gpu{}});
  EXPECT_NE(pair.unjudged().find("recipe-gpus"), std::string::npos);
}

Pair without_gpu() {
  Pair pair = test::plain_on_cpu();
  pair.image = torch_on_h100().image;
  return pair;
}

TEST(NoGpu, SlowsUnlessItWasAskedFor) {
  Pair pair = without_gpu();
  EXPECT_EQ(pair.found(), "no-gpu");
  EXPECT_EQ(pair.verdict().worst(), Severity::slows);
  pair.image.gpus = from_test(Strings{"sm_90"});
  EXPECT_EQ(pair.found(), "no-gpu=blocks");
  pair = without_gpu();
  pair.image.oldest_driver = known<std::string>("570", "the recipe's `driver`");
  EXPECT_EQ(pair.found(), "no-gpu=blocks");
  // Each image of mlenv's with CUDA has the label.
  pair.image.oldest_driver = known<std::string>("570", "label dev.mlenv.min-driver");
  EXPECT_EQ(pair.found(), "no-gpu");
  pair.image.gpus = known(Strings{"sm_90"}, "label dev.mlenv.sm");
  EXPECT_EQ(pair.found(), "no-gpu");
  pair = without_gpu();
  pair.use.gpus = 1;
  EXPECT_EQ(pair.found(), "no-gpu=blocks");
  pair.use.gpus = 0;
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(test::plain_on_cpu().found(), "");
}

TEST(NoGpu, FewerThanAskedFor) {
  Pair pair = torch_on_h100();
  pair.use.gpus = 1;
  EXPECT_EQ(pair.found(), "");
  pair.use.gpus = 2;
  EXPECT_EQ(pair.found(), "no-gpu=blocks");
  EXPECT_EQ(pair.finding("no-gpu").needed, "2 GPUs");
  EXPECT_EQ(pair.finding("no-gpu").found, "1 GPU");
  EXPECT_EQ(pair.finding("no-gpu").title, "there are too few GPUs");
  EXPECT_EQ(pair.finding("no-gpu").remedy,
            "run it on a host with 2 GPUs, or ask for fewer (`--gpus 1`)");
  pair.host.gpus = unknown<std::vector<Gpu>>("NVML hangs");  // the bus has some
  EXPECT_EQ(pair.found(), "");
  EXPECT_NE(pair.unjudged().find("no-gpu"), std::string::npos);
}

TEST(NoGpu, WhatIsNotKnown) {
  Pair pair = without_gpu();
  pair.host.gpus = unknown<std::vector<Gpu>>("NVML hangs");
  pair.host.nvidia.pci_devices = unknown<Strings>("no /sys");
  EXPECT_EQ(pair.found(), "");
  EXPECT_NE(pair.unjudged().find("no-gpu"), std::string::npos);
}

TEST(CpuOnlyFramework, OnAHostWithGpus) {
  Pair pair = torch_on_h100();
  pair.image.frameworks = from_test(std::vector<FrameworkBuild>{{"torch", "2.9.1+cpu", "cpu"}});
  pair.image.cuda_runtimes = from_test(std::vector<FoundLibrary>{});
  pair.image.device_code = from_test(std::vector<DeviceLibrary>{});
  EXPECT_EQ(pair.found(), "cpu-only-framework");
  pair.use.gpus = 0;
  EXPECT_EQ(pair.found(), "");
  pair.use = {};
  pair.host = test::plain_on_cpu().host;
  EXPECT_EQ(pair.found(), "");
}

TEST(Mig, IsTold) {
  Pair pair = torch_on_h100();
  std::vector<Gpu> gpus = *pair.host.gpus;
  gpus.front().mig = from_test(true);
  pair.host.gpus = from_test(gpus);
  EXPECT_EQ(pair.found(), "mig");
}

TEST(Cdi, MissingWithoutTheToolkit) {
  Pair pair = torch_on_h100();
  pair.host.containers.cdi = from_test(std::vector<CdiFile>{});
  EXPECT_EQ(pair.found(), "gpus-after-daemon-reload");
  pair.host.containers.engines = from_test(std::vector<Engine>{{"docker", "/usr/bin/docker", {}}});
  EXPECT_EQ(pair.found(), "cdi-missing");
  pair.host.containers.engines = from_test(
      std::vector<Engine>{{"nvidia-ctk", "/usr/bin/x", {}}, {"podman", "/usr/bin/podman", {}}});
  EXPECT_EQ(pair.found(), "cdi-missing");
  pair.host.containers.engines = from_test(std::vector<Engine>{});
  EXPECT_EQ(pair.found(), "");
  // These bring the driver's files in by themselves.
  pair.host.containers.engines =
      from_test(std::vector<Engine>{{"apptainer", "/usr/bin/apptainer", {}},
                                    {"enroot", "/usr/bin/enroot", {}},
                                    {"runc", "/usr/bin/runc", {}}});
  EXPECT_EQ(pair.found(), "");
  pair.host.containers.cdi = unknown<std::vector<CdiFile>>("not readable");
  EXPECT_EQ(pair.unjudged(), "");
  pair.host.containers.cdi = from_test(std::vector<CdiFile>{});
  pair.host.containers.engines = from_test(std::vector<Engine>{{"docker", "/usr/bin/docker", {}}});
  pair.host.system.container = from_test<std::string>("docker");
  EXPECT_EQ(pair.found(), "");
}

TEST(Cdi, OfOtherDevicesDoesNotCount) {
  Pair pair = torch_on_h100();
  pair.host.containers.cdi = from_test(
      std::vector<CdiFile>{{"/etc/cdi/x.json", from_test<std::string>("example.com/nic"), {}}});
  EXPECT_EQ(pair.found(), "gpus-after-daemon-reload");
}

TEST(DaemonReload, NotByCdi) {
  Pair pair = torch_on_h100();
  EXPECT_EQ(pair.found(), "");
  pair.host.containers.cdi = from_test(std::vector<CdiFile>{});
  EXPECT_EQ(pair.found(), "gpus-after-daemon-reload");
}

TEST(DaemonReload, OnlyWhereSystemdKeepsTheGroups) {
  Pair pair = torch_on_h100();
  pair.host.containers.cdi = from_test(std::vector<CdiFile>{});
  pair.host.isolation.cgroup_version = from_test<std::string>("v1");
  EXPECT_EQ(pair.found(), "");
  pair.host.isolation.cgroup_version = from_test<std::string>("v2");
}

}  // namespace
}  // namespace mlenv
