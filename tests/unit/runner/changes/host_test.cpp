// Rules about hosts: each is provoked, and told from what is beside it.
#include <gtest/gtest.h>

#include "base/size_limits.hpp"
#include "tests/support/from_test.hpp"
#include "tests/unit/runner/changes/moments.hpp"

namespace mlenv::test {
namespace {

Text host_text(const char* value) { return from_test<std::string>(value); }

/// What is found where a host's facts become others.
template <class Alter>
std::string of_host(Alter&& alter) {
  Facts to = whole_host();
  alter(to);
  return rules_in(between(whole_host(), to));
}
template <class Alter>
std::string of_gpus(Alter&& alter) {
  return of_host([&](Facts& host) {
    for (Gpu& one : *host.gpus.value) alter(one);
  });
}
template <class Alter>
std::string of_cpu_run(Alter&& alter) {
  RunRecord to = cpu_run();
  alter(*to.facts);
  return rules_in(between(cpu_run(), to));
}

TEST(ChangesOfHosts, AreNoneBetweenEqualOnes) {
  const changes::Changes found = between(whole_host(), whole_host());
  EXPECT_EQ(rules_in(found), "");
  EXPECT_TRUE(found.found.empty());
  EXPECT_EQ(open_in(found), "");
  EXPECT_EQ(found.likely(), nullptr);
}

TEST(ChangesOfHosts, Driver) {
  const auto to = [](const char* kernel, const char* user) {
    return of_host([&](Facts& host) {
      host.nvidia.kernel_driver = host_text(kernel);
      host.nvidia.user_driver = host_text(user);
      host.nvidia.mismatch = from_test(std::string_view(kernel) != user);
    });
  };
  EXPECT_EQ(to("580.95.05", "580.95.05"), "driver");
  EXPECT_EQ(to("535.183.01", "535.183.01"), "driver=breaks");
  EXPECT_EQ(to("none", "none"), "driver=breaks");
  EXPECT_EQ(to("570.172.08", "570.195.03"), "driver-mismatch");
  EXPECT_EQ(of_host([](Facts& host) { host.nvidia.open_module = from_test(false); }),
            "driver-module");
  EXPECT_EQ(of_host([](Facts& host) { host.nvidia.cuda_status = from_test(std::uint64_t{999}); }),
            "cuda-init");
}

TEST(ChangesOfHosts, Gpus) {
  EXPECT_EQ(of_gpus([](Gpu& one) { one.name = host_text("NVIDIA B200"); }), "gpu-model");
  EXPECT_EQ(of_gpus([](Gpu& one) {
              one.name = host_text("NVIDIA A100");
              one.compute_capability = host_text("8.0");
            }),
            "gpu-model=breaks");
  EXPECT_EQ(of_gpus([](Gpu& one) {
              one.name = host_text("NVIDIA X");
              one.compute_capability = host_text("12.0");
            }),
            "gpu-model");  // 12 is more than 9
  EXPECT_EQ(of_gpus([](Gpu& one) { one.memory_bytes = from_test(40 * size_limit::kGiB); }),
            "gpu-memory");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.memory_bytes = from_test(140 * size_limit::kGiB); }),
            "gpu-memory=note");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.memory_bytes = from_test(80 * size_limit::kGiB - 4096); }),
            "");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.mig = from_test(true); }), "mig");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.ecc = from_test(false); }), "ecc");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.persistence = from_test(false); }), "persistence");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.nvlinks = from_test(std::uint64_t{12}); }), "gpu-links");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.pcie_lanes = from_test(std::uint64_t{8}); }), "gpu-links");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.uuid = host_text("GPU-x"); }), "");
  EXPECT_EQ(of_host([](Facts& host) { host.gpu_paths.value->front().path = host_text("SYS"); }),
            "gpu-links");
  EXPECT_EQ(of_host([](Facts& host) {
              host.gpus.value->pop_back();
              host.gpu_paths.value->clear();
            }),
            "gpu-count");
}

TEST(ChangesOfHosts, WhatGpusNeedAround) {
  EXPECT_EQ(of_host([](Facts& host) { host.nvidia.device_nodes = from_test(false); }),
            "device-nodes");
  EXPECT_EQ(of_host([](Facts& host) { host.nvidia.fabric_manager = from_test(false); }),
            "fabric-manager");
  EXPECT_EQ(of_host([](Facts& host) {
              host.nvidia.peermem = from_test(false);
              host.nvidia.dma_buf = from_test(false);
            }),
            "gpu-direct");
  // One of the two is enough.
  EXPECT_EQ(of_host([](Facts& host) { host.nvidia.peermem = from_test(false); }), "");
}

TEST(ChangesOfHosts, GpusDoNotMatterToARunWithoutThem) {
  const auto alter = [](Facts& host) {
    host.nvidia.kernel_driver = host_text("580.95.05");
    host.gpus.value->front().mig = from_test(true);
    host.gpus.value->pop_back();
  };
  EXPECT_EQ(of_cpu_run(alter), "");
  RunRecord with = whole_run();
  alter(*with.facts);
  EXPECT_EQ(rules_in(between(whole_run(), with)), "mig driver");
}

TEST(ChangesOfHosts, Processors) {
  EXPECT_EQ(of_host([](Facts& host) { host.system.architecture = host_text("aarch64"); }),
            "architecture");
  EXPECT_EQ(of_host([](Facts& host) {
              host.cpu.model = host_text("E5-2690");
              host.cpu.flags.value->pop_back();
            }),
            "cpu-instructions");
  EXPECT_EQ(of_host([](Facts& host) { host.cpu.model = host_text("AMD EPYC 9654"); }), "cpu-model");
  EXPECT_EQ(of_host([](Facts& host) { host.cpu.usable = from_test(std::uint64_t{8}); }),
            "cpu-count");
  EXPECT_EQ(of_host([](Facts& host) { host.cpu.limit_millicpus = from_test(Limit{2000}); }),
            "cpu-quota");
  EXPECT_EQ(of_host([](Facts& host) { host.memory.numa.value->pop_back(); }), "numa");
}

TEST(ChangesOfHosts, Memory) {
  const auto limit = [](std::optional<std::uint64_t> most) {
    return of_host([&](Facts& host) { host.memory.limit_bytes = from_test(Limit{most}); });
  };
  EXPECT_EQ(limit(16 * size_limit::kGiB), "memory-limit");
  EXPECT_EQ(limit(std::nullopt), "memory-limit=note");
  const auto total = [](std::uint64_t bytes) {
    return of_host([&](Facts& host) { host.memory.total_bytes = from_test(bytes); });
  };
  EXPECT_EQ(total(64 * size_limit::kGiB), "memory-total");
  EXPECT_EQ(total(1024 * size_limit::kGiB), "memory-total=note");
  EXPECT_EQ(total(512 * size_limit::kGiB - 4096), "");
  EXPECT_EQ(of_host([](Facts& host) {
              host.storage.shared_memory.size_bytes = from_test(std::uint64_t{64} << 20U);
            }),
            "shared-memory");
  EXPECT_EQ(of_host([](Facts& host) { host.memory.swap_bytes = from_test(std::uint64_t{0}); }),
            "swap");
}

TEST(ChangesOfHosts, LimitsAndDisks) {
  EXPECT_EQ(of_host([](Facts& host) { host.limits.open_files_soft = from_test(Limit{1024}); }),
            "open-files");
  EXPECT_EQ(of_host([](Facts& host) { host.limits.memlock_soft_bytes = from_test(Limit{65536}); }),
            "locked-memory");
  EXPECT_EQ(of_host([](Facts& host) {
              host.storage.temporary.free_bytes = from_test(size_limit::kGiB / 2);
            }),
            "disk-space");
  EXPECT_EQ(of_host([](Facts& host) {
              host.storage.temporary.free_bytes = from_test(size_limit::kGiB * 2);
            }),
            "");
  EXPECT_EQ(of_host([](Facts& host) { host.storage.store.type = host_text("nfs4"); }),
            "file-system");
}

TEST(ChangesOfHosts, System) {
  EXPECT_EQ(of_host([](Facts& host) { host.system.kernel = host_text("6.12.0-1-amd64"); }),
            "kernel");
  EXPECT_EQ(of_host([](Facts& host) { host.system.wsl = from_test(true); }), "wsl");
  EXPECT_EQ(of_host([](Facts& host) { host.system.container = host_text("docker"); }), "container");
  EXPECT_EQ(of_host([](Facts& host) { host.system.user_id = from_test(std::uint64_t{0}); }),
            "user");
  EXPECT_EQ(of_host([](Facts& host) { host.system.distribution = host_text("ubuntu"); }),
            "distribution");
  EXPECT_EQ(of_host([](Facts& host) { host.isolation.sandbox = from_test(false); }), "namespaces");
  EXPECT_EQ(of_host([](Facts& host) { host.isolation.seccomp = host_text("filter"); }),
            "confinement");
}

TEST(ChangesOfHosts, NetworkAndClock) {
  EXPECT_EQ(of_host([](Facts& host) { host.network.host_is_loopback = from_test(true); }),
            "host-loopback");
  EXPECT_EQ(
      of_host([](Facts& host) { host.network.rdma.value->front().state = host_text("DOWN"); }),
      "rdma");
  EXPECT_EQ(of_host([](Facts& host) {
              host.network.interfaces.value->front().speed_mbps = from_test(std::uint64_t{1000});
            }),
            "network-speed");
  EXPECT_EQ(of_host([](Facts& host) { host.network.interfaces.value->front().name = "eth0"; }), "");
  EXPECT_EQ(of_host([](Facts& host) { host.time.synchronised = from_test(false); }), "clock");
  EXPECT_EQ(of_host([](Facts& host) { host.time.clock_source = host_text("hpet"); }),
            "clock-source");
}

TEST(ChangesOfHosts, UnknownIsNeitherTheSameNorDifferent) {
  Facts to = whole_host();
  to.memory.limit_bytes = unknown<Limit>("no cgroup can be seen");
  const changes::Changes found = between(whole_host(), to);
  EXPECT_EQ(rules_in(found), "");
  ASSERT_EQ(found.open.size(), 1U);
  EXPECT_EQ(found.open.front().what, "host memory.limit_bytes");
  EXPECT_EQ(found.open.front().from, std::nullopt);
  EXPECT_EQ(found.open.front().to, "no cgroup can be seen");
}

TEST(ChangesOfHosts, WhatCannotMatterIsIncidental) {
  Facts to = whole_host();
  to.network.host_name = host_text("node18");
  to.gpus.value->front().uuid = host_text("GPU-x");
  to.storage.store.free_bytes = from_test(size_limit::kGiB * 300);
  const changes::Changes found = between(whole_host(), to);
  EXPECT_FALSE(found.differ());
  std::string all;
  for (const changes::Change& one : found.found) all += one.rule + ' ' + one.what + '\n';
  EXPECT_EQ(all,
            "host-detail host gpus.0.uuid\n"
            "host-detail host network.host_name\n"
            "host-detail host storage.store.free_bytes\n");
}

}  // namespace
}  // namespace mlenv::test
