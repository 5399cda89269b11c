// Rules about hosts: each is provoked, and told from what is beside it.
#include <gtest/gtest.h>

#include "tests/unit/runner/changes/moments.hpp"

namespace mlenv::test {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

template <class T>
Fact<T> told(T value) {
  return known(std::move(value), "test");
}
Text text(const char* value) { return told<std::string>(value); }

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
      host.nvidia.kernel_driver = text(kernel);
      host.nvidia.user_driver = text(user);
      host.nvidia.mismatch = told(std::string_view(kernel) != user);
    });
  };
  EXPECT_EQ(to("580.95.05", "580.95.05"), "driver");
  EXPECT_EQ(to("535.183.01", "535.183.01"), "driver=breaks");
  EXPECT_EQ(to("none", "none"), "driver=breaks");
  EXPECT_EQ(to("570.172.08", "570.195.03"), "driver-mismatch");
  EXPECT_EQ(of_host([](Facts& host) { host.nvidia.open_module = told(false); }), "driver-module");
  EXPECT_EQ(of_host([](Facts& host) { host.nvidia.cuda_status = told(std::uint64_t{999}); }),
            "cuda-init");
}

TEST(ChangesOfHosts, Gpus) {
  EXPECT_EQ(of_gpus([](Gpu& one) { one.name = text("NVIDIA B200"); }), "gpu-model");
  EXPECT_EQ(of_gpus([](Gpu& one) {
              one.name = text("NVIDIA A100");
              one.compute_capability = text("8.0");
            }),
            "gpu-model=breaks");
  EXPECT_EQ(of_gpus([](Gpu& one) {
              one.name = text("NVIDIA X");
              one.compute_capability = text("12.0");
            }),
            "gpu-model");  // 12 is more than 9
  EXPECT_EQ(of_gpus([](Gpu& one) { one.memory_bytes = told(40 * kGiB); }), "gpu-memory");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.memory_bytes = told(140 * kGiB); }), "gpu-memory=note");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.memory_bytes = told(80 * kGiB - 4096); }), "");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.mig = told(true); }), "mig");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.ecc = told(false); }), "ecc");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.persistence = told(false); }), "persistence");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.nvlinks = told(std::uint64_t{12}); }), "gpu-links");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.pcie_lanes = told(std::uint64_t{8}); }), "gpu-links");
  EXPECT_EQ(of_gpus([](Gpu& one) { one.uuid = text("GPU-x"); }), "");
  EXPECT_EQ(of_host([](Facts& host) { host.gpu_paths.value->front().path = text("SYS"); }),
            "gpu-links");
  EXPECT_EQ(of_host([](Facts& host) {
              host.gpus.value->pop_back();
              host.gpu_paths.value->clear();
            }),
            "gpu-count");
}

TEST(ChangesOfHosts, WhatGpusNeedAround) {
  EXPECT_EQ(of_host([](Facts& host) { host.nvidia.device_nodes = told(false); }), "device-nodes");
  EXPECT_EQ(of_host([](Facts& host) { host.nvidia.fabric_manager = told(false); }),
            "fabric-manager");
  EXPECT_EQ(of_host([](Facts& host) {
              host.nvidia.peermem = told(false);
              host.nvidia.dma_buf = told(false);
            }),
            "gpu-direct");
  // One of the two is enough.
  EXPECT_EQ(of_host([](Facts& host) { host.nvidia.peermem = told(false); }), "");
}

TEST(ChangesOfHosts, GpusDoNotMatterToARunWithoutThem) {
  const auto alter = [](Facts& host) {
    host.nvidia.kernel_driver = text("580.95.05");
    host.gpus.value->front().mig = told(true);
    host.gpus.value->pop_back();
  };
  EXPECT_EQ(of_cpu_run(alter), "");
  RunRecord with = whole_run();
  alter(*with.facts);
  EXPECT_EQ(rules_in(between(whole_run(), with)), "mig driver");
}

TEST(ChangesOfHosts, Processors) {
  EXPECT_EQ(of_host([](Facts& host) { host.system.architecture = text("aarch64"); }),
            "architecture");
  EXPECT_EQ(of_host([](Facts& host) {
              host.cpu.model = text("E5-2690");
              host.cpu.flags.value->pop_back();
            }),
            "cpu-instructions");
  EXPECT_EQ(of_host([](Facts& host) { host.cpu.model = text("AMD EPYC 9654"); }), "cpu-model");
  EXPECT_EQ(of_host([](Facts& host) { host.cpu.usable = told(std::uint64_t{8}); }), "cpu-count");
  EXPECT_EQ(of_host([](Facts& host) { host.cpu.limit_millicpus = told(Limit{2000}); }),
            "cpu-quota");
  EXPECT_EQ(of_host([](Facts& host) { host.memory.numa.value->pop_back(); }), "numa");
}

TEST(ChangesOfHosts, Memory) {
  const auto limit = [](std::optional<std::uint64_t> most) {
    return of_host([&](Facts& host) { host.memory.limit_bytes = told(Limit{most}); });
  };
  EXPECT_EQ(limit(16 * kGiB), "memory-limit");
  EXPECT_EQ(limit(std::nullopt), "memory-limit=note");
  const auto total = [](std::uint64_t bytes) {
    return of_host([&](Facts& host) { host.memory.total_bytes = told(bytes); });
  };
  EXPECT_EQ(total(64 * kGiB), "memory-total");
  EXPECT_EQ(total(1024 * kGiB), "memory-total=note");
  EXPECT_EQ(total(512 * kGiB - 4096), "");
  EXPECT_EQ(of_host([](Facts& host) {
              host.storage.shared_memory.size_bytes = told(std::uint64_t{64} << 20U);
            }),
            "shared-memory");
  EXPECT_EQ(of_host([](Facts& host) { host.memory.swap_bytes = told(std::uint64_t{0}); }), "swap");
}

TEST(ChangesOfHosts, LimitsAndDisks) {
  EXPECT_EQ(of_host([](Facts& host) { host.limits.open_files_soft = told(Limit{1024}); }),
            "open-files");
  EXPECT_EQ(of_host([](Facts& host) { host.limits.memlock_soft_bytes = told(Limit{65536}); }),
            "locked-memory");
  EXPECT_EQ(of_host([](Facts& host) { host.storage.temporary.free_bytes = told(kGiB / 2); }),
            "disk-space");
  EXPECT_EQ(of_host([](Facts& host) { host.storage.temporary.free_bytes = told(kGiB * 2); }), "");
  EXPECT_EQ(of_host([](Facts& host) { host.storage.store.type = text("nfs4"); }), "file-system");
}

TEST(ChangesOfHosts, System) {
  EXPECT_EQ(of_host([](Facts& host) { host.system.kernel = text("6.12.0-1-amd64"); }), "kernel");
  EXPECT_EQ(of_host([](Facts& host) { host.system.wsl = told(true); }), "wsl");
  EXPECT_EQ(of_host([](Facts& host) { host.system.container = text("docker"); }), "container");
  EXPECT_EQ(of_host([](Facts& host) { host.system.user_id = told(std::uint64_t{0}); }), "user");
  EXPECT_EQ(of_host([](Facts& host) { host.system.distribution = text("ubuntu"); }),
            "distribution");
  EXPECT_EQ(of_host([](Facts& host) { host.isolation.sandbox = told(false); }), "namespaces");
  EXPECT_EQ(of_host([](Facts& host) { host.isolation.seccomp = text("filter"); }), "confinement");
}

TEST(ChangesOfHosts, NetworkAndClock) {
  EXPECT_EQ(of_host([](Facts& host) { host.network.host_is_loopback = told(true); }),
            "host-loopback");
  EXPECT_EQ(of_host([](Facts& host) { host.network.rdma.value->front().state = text("DOWN"); }),
            "rdma");
  EXPECT_EQ(of_host([](Facts& host) {
              host.network.interfaces.value->front().speed_mbps = told(std::uint64_t{1000});
            }),
            "network-speed");
  EXPECT_EQ(of_host([](Facts& host) { host.network.interfaces.value->front().name = "eth0"; }), "");
  EXPECT_EQ(of_host([](Facts& host) { host.time.synchronised = told(false); }), "clock");
  EXPECT_EQ(of_host([](Facts& host) { host.time.clock_source = text("hpet"); }), "clock-source");
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
  to.network.host_name = text("node18");
  to.gpus.value->front().uuid = text("GPU-x");
  to.storage.store.free_bytes = told(kGiB * 300);
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
