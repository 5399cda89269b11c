#include "tests/unit/runner/check/pair.hpp"
#include "tests/support/from_test.hpp"

#include <gtest/gtest.h>
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

void fill_system(Facts& host) {
  host.system.architecture = from_test<std::string>("x86_64");
  host.system.kernel = from_test<std::string>("6.1.0-41-amd64");
  host.system.wsl = from_test(false);
  host.system.container = from_test<std::string>("none");
  host.cpu.level = from_test<std::string>("x86-64-v3");
  host.cpu.flags = from_test(Strings{"avx", "avx2", "fma", "sse4_2"});
  host.storage.store.free_bytes = from_test<std::uint64_t>(500'000'000'000);
  host.storage.shared_memory.size_bytes = from_test<std::uint64_t>(64'000'000'000);
  host.limits.memlock_soft_bytes = from_test(Limit{});
  host.limits.open_files_soft = from_test(Limit{1024});
  host.limits.open_files_hard = from_test(Limit{524288});
  host.isolation.sandbox = from_test(true);
  host.isolation.cgroup_version = from_test<std::string>("v2");
  host.network.interfaces =
      from_test(std::vector<NetworkInterface>{{"eth0",
                                               from_test<std::string>("physical"),
                                               from_test<std::string>("up"),
                                               {},
                                               {},
                                               from_test(Strings{"192.0.2.2/24"})},
                                              {"lo",
                                               from_test<std::string>("loopback"),
                                               from_test<std::string>("unknown"),
                                               {},
                                               {},
                                               from_test(Strings{"127.0.0.1/8"})}});
  host.network.rdma = from_test(std::vector<RdmaPort>{});
  host.network.host_is_loopback = from_test(false);
  host.time.synchronised = from_test(true);
  host.containers.engines = from_test(std::vector<Engine>{});
  host.containers.cdi = from_test(std::vector<CdiFile>{});
}

void fill_image(ImageFacts& image) {
  image.name = "train";
  image.kind = "image";
  image.architecture = "amd64";
  image.cudnn = from_test(std::vector<FoundLibrary>{});
  image.nccl = from_test(std::vector<FoundLibrary>{});
  image.cuda_runtimes = from_test(std::vector<FoundLibrary>{});
  image.frameworks = from_test(std::vector<FrameworkBuild>{});
  image.device_code = from_test(std::vector<DeviceLibrary>{});
  image.forward_compatibility = from_test(std::vector<ForwardCompatibility>{});
  image.glibc = from_test(SymbolVersions{"GLIBC_2.34", "/usr/bin/python3.11", "GLIBC_2.36"});
  image.libstdcxx = from_test(SymbolVersions{"GLIBCXX_3.4.30", "/x.so", "GLIBCXX_3.4.30"});
  image.least_kernel = from_test<std::string>("3.2.0");
  image.cpu = from_test(std::vector<CpuNeed>{{"torch 2.9.1", {"avx2"}}});
  image.missing_libraries =
      from_test(std::vector<MissingLibrary>{{"libcuda.so.1", "/torch.so", 1, true}});
  image.missing_versions = from_test(std::vector<MissingVersion>{});
  image.unpacked_bytes = from_test<std::uint64_t>(9'000'000'000);
  image.waste = from_test(std::vector<Waste>{});
  image.user_ids = from_test(Strings{"0", "33"});
  image.user = from_test<std::string>("");
  image.oldest_driver = from_test<std::string>("");
  image.gpus = from_test(Strings{});
}

}  // namespace

namespace test {

std::string Pair::found() const {
  std::string text;
  for (const Finding& one : verdict().findings) {
    const Rule* rule = find_rule(one.rule);
    EXPECT_NE(rule, nullptr) << one.rule;
    EXPECT_FALSE(one.needed.empty() || one.found.empty() || one.remedy.empty()) << one.rule;
    if (!text.empty()) text += ' ';
    text += one.rule;
    if (rule != nullptr && rule->severity != one.severity) {
      text += '=' + std::string(name_of(one.severity));
    }
  }
  return text;
}

std::string Pair::unjudged() const {
  std::string text;
  for (const Unjudged& one : verdict().unjudged) {
    EXPECT_NE(find_rule(one.rule), nullptr) << one.rule;
    text += (text.empty() ? "" : " ") + one.rule;
  }
  return text;
}

Finding Pair::finding(std::string_view rule) const {
  for (const Finding& one : verdict().findings) {
    if (one.rule == rule) return one;
  }
  ADD_FAILURE() << "no finding of " << rule << ": " << found();
  return {};
}

Gpu gpu(std::uint64_t index, const std::string& name, const std::string& capability) {
  Gpu one;
  one.index = index;
  one.name = from_test(name);
  one.compute_capability = from_test(capability);
  one.mig = from_test(false);
  one.persistence = from_test(true);
  return one;
}

void set_driver(Facts& host, const std::string& driver, const std::string& cuda) {
  host.nvidia.kernel_driver = from_test(driver);
  host.nvidia.user_driver = from_test(driver);
  host.nvidia.cuda_version = from_test(cuda);
}

Pair torch_on_h100() {
  Pair pair;
  fill_system(pair.host);
  fill_image(pair.image);
  Facts& host = pair.host;
  set_driver(host, "570.172.08", "12.8");
  host.nvidia.mismatch = from_test(false);
  host.nvidia.cuda_status = from_test<std::uint64_t>(0);
  host.nvidia.pci_devices = from_test(Strings{"0000:17:00.0"});
  host.nvidia.device_nodes = from_test(true);
  host.nvidia.nvswitch = from_test(false);
  host.nvidia.persistence_daemon = from_test(true);
  host.nvidia.peermem = from_test(false);
  host.nvidia.dma_buf = from_test(true);
  host.gpus = from_test(std::vector<Gpu>{gpu(0, "NVIDIA H100 80GB HBM3", "9.0")});
  host.containers.engines = from_test(
      std::vector<Engine>{{"docker", "/usr/bin/docker", {}}, {"nvidia-ctk", "/usr/bin/x", {}}});
  host.containers.cdi = from_test(
      std::vector<CdiFile>{{"/etc/cdi/nvidia.yaml", from_test<std::string>("nvidia.com/gpu"), {}}});
  ImageFacts& image = pair.image;
  image.cuda_runtimes = from_test(std::vector<FoundLibrary>{{"/v/libcudart.so.12", "12.8.90"}});
  image.frameworks = from_test(std::vector<FrameworkBuild>{{"torch", "2.9.1", "12.8"}});
  image.nccl = from_test(std::vector<FoundLibrary>{{"/v/libnccl.so.2", "2.27.5"}});
  image.device_code = from_test(std::vector<DeviceLibrary>{
      {"/v/libtorch_cuda.so", {"sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100"}, true},
      {"/v/libcublas.so.12", {"sm_90"}, false}});
  return pair;
}

Pair plain_on_cpu() {
  Pair pair;
  fill_system(pair.host);
  fill_image(pair.image);
  pair.host.nvidia.kernel_driver = from_test<std::string>("none");
  pair.host.nvidia.pci_devices = from_test(Strings{});
  pair.host.gpus = from_test(std::vector<Gpu>{});
  return pair;
}

}  // namespace test

namespace {

TEST(Verdict, NothingIsWrong) {
  const test::Pair gpu = test::torch_on_h100();
  EXPECT_EQ(gpu.found(), "");
  EXPECT_EQ(gpu.unjudged(), "");
  EXPECT_FALSE(gpu.verdict().blocks());
  EXPECT_EQ(gpu.verdict().worst(), std::nullopt);
  const test::Pair cpu = test::plain_on_cpu();
  EXPECT_EQ(cpu.found(), "");
  EXPECT_EQ(cpu.unjudged(), "");
}

TEST(Verdict, NothingKnownIsNoNo) {
  test::Pair pair;
  pair.image.kind = "image";
  EXPECT_EQ(pair.found(), "");
  EXPECT_NE(pair.unjudged().find("driver-too-old"), std::string::npos);
  // Each side alone.
  pair.image = test::torch_on_h100().image;
  EXPECT_EQ(pair.found(), "");
  pair = test::torch_on_h100();
  pair.image = {};
  EXPECT_EQ(pair.found(), "");
}

TEST(Verdict, WorstFirst) {
  test::Pair pair = test::torch_on_h100();
  pair.host.time.synchronised = from_test(false);
  pair.host.storage.shared_memory.size_bytes = from_test<std::uint64_t>(64U << 20U);
  pair.host.nvidia.mismatch = from_test(true);
  EXPECT_EQ(pair.found(), "driver-mismatch shared-memory-small clock-unsynchronised");
  EXPECT_TRUE(pair.verdict().blocks());
}

TEST(Verdict, InAWord) {
  test::Pair pair = test::torch_on_h100();
  EXPECT_EQ(pair.verdict().word(), "runs");
  pair.host.time.synchronised = from_test(false);
  EXPECT_EQ(pair.verdict().word(), "runs");
  pair.image.device_code =
      from_test(std::vector<DeviceLibrary>{{"/v/libtorch_cuda.so", {"compute_80"}, true}});
  EXPECT_EQ(pair.verdict().word(), "slows");
  pair.host.storage.shared_memory.size_bytes = from_test<std::uint64_t>(1);
  EXPECT_EQ(pair.verdict().word(), "risks");
  // Of little weight, and of much.
  pair.host.nvidia.cuda_status = unknown<std::uint64_t>("?");
  EXPECT_EQ(pair.verdict().word(), "risks");
  pair.image.device_code = unknown<std::vector<DeviceLibrary>>("?");
  EXPECT_EQ(pair.verdict().word(), "unknown");
  pair.host.nvidia.mismatch = from_test(true);
  EXPECT_EQ(pair.verdict().word(), "blocks");
}

TEST(Verdict, LeavesOpenWhatARuleOfThatWeightCouldNotJudge) {
  test::Pair pair = test::torch_on_h100();
  EXPECT_FALSE(pair.verdict().leaves_open(Severity::note));
  pair.host.nvidia.peermem = unknown<bool>("?");
  pair.host.nvidia.dma_buf = from_test(false);
  pair.host.network.rdma =
      from_test(std::vector<RdmaPort>{{"mlx5_0", 1, {}, from_test<std::string>("ACTIVE"), {}, {}}});
  EXPECT_EQ(pair.unjudged(), "gpudirect-missing");  // which only slows
  EXPECT_FALSE(pair.verdict().leaves_open(Severity::risks));
  EXPECT_TRUE(pair.verdict().leaves_open(Severity::slows));
  pair.host.containers.cdi = unknown<std::vector<CdiFile>>("?");
  EXPECT_FALSE(pair.verdict().leaves_open(Severity::blocks));
  EXPECT_TRUE(pair.verdict().leaves_open(Severity::risks));
  EXPECT_EQ(pair.verdict().word(), "runs");
}

TEST(Verdict, WhatIsUnknownSaysHowToKnowIt) {
  test::Pair pair = test::torch_on_h100();
  const auto how = [&pair] { return pair.verdict().unjudged.front().how; };
  pair.image.device_code = unknown<std::vector<DeviceLibrary>>("?");
  pair.image.kind = "recipe";
  EXPECT_EQ(how(), "`mlenv lock` the recipe, and check it again");
  pair.image.kind = "lock";
  EXPECT_EQ(how(), "`mlenv build` it, and check the image");
  pair.image.kind = "image";
  EXPECT_NE(how().find("`mlenv inspect IMAGE --facts --json`"), std::string::npos);
  pair = test::torch_on_h100();
  pair.host.gpus.value->front().compute_capability = unknown<std::string>("?");
  EXPECT_NE(how().find("with its driver loaded"), std::string::npos);
  pair = test::torch_on_h100();
  pair.host.isolation.sandbox = unknown<bool>("?");
  EXPECT_NE(how().find("on the host itself"), std::string::npos);
  // A release that the table lacks, on a driver that says nothing of CUDA.
  pair = test::torch_on_h100();
  pair.image.frameworks = from_test(std::vector<FrameworkBuild>{{"torch", "3.0", "13.9"}});
  test::set_driver(pair.host, "999.1", "13.9");
  pair.host.nvidia.cuda_version = unknown<std::string>("?");
  EXPECT_NE(how().find("`mlenv data update`"), std::string::npos);
}

TEST(Verdict, RulesAreNamedOnce) {
  std::vector<std::string_view> ids;
  for (const Rule& rule : rules()) {
    EXPECT_EQ(find_rule(rule.id), &rule);
    EXPECT_FALSE(rule.title.empty() || rule.source.empty()) << rule.id;
    ids.push_back(rule.id);
  }
  EXPECT_EQ(ids.size(), 43U);
  EXPECT_EQ(find_rule("no-such-rule"), nullptr);
}

// A fact at a time is taken away: nothing that was fine becomes a finding.
struct Blinder {
  std::size_t at;
  std::size_t seen = 0;
  bool done = false;

  template <class T>
  void operator()(const char* /*name*/, T& field) {
    if constexpr (requires {
                    field.source;
                    field.value;
                  }) {
      if (seen++ == at) {
        field.value.reset();
        done = true;
      }
    } else if constexpr (requires { T::fields(field, *this); }) {
      T::fields(field, *this);
    }
  }
};

TEST(Verdict, AnUnknownFactGivesNoFinding) {
  for (const bool of_host : {true, false}) {
    for (std::size_t at = 0;; ++at) {
      test::Pair pair = test::torch_on_h100();
      pair.use.nodes = 2;
      Blinder blinder{at};
      if (of_host) {
        Facts::fields(pair.host, blinder);
      } else {
        ImageFacts::fields(pair.image, blinder);
      }
      if (!blinder.done) break;
      EXPECT_EQ(pair.found(), "") << (of_host ? "host fact " : "image fact ") << at;
    }
  }
}

}  // namespace
}  // namespace mlenv
