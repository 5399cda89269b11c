// Facts of recorded hosts: folders of files as the kernel and programs write them.
#include <sched.h>

#include <gtest/gtest.h>

#include <map>

#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

class RecordedHost : public testing::Test {
 protected:
  RecordedHost() {
    put("proc/sys/kernel/osrelease", "6.1.0-30-amd64\n");
    put("proc/sys/kernel/arch", "x86_64\n");
    put("proc/sys/kernel/hostname", "node1\n");
    put("etc/os-release",
        "ID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n"
        "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
    put("proc/self/mountinfo",
        "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
        "23 27 0:22 / /sys rw - sysfs sysfs rw\n"
        "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
        "25 27 0:23 / /dev/shm rw - tmpfs shm rw,size=65536k\n");
    put("proc/self/cgroup", "0::/user.slice/job\n");
    put("sys/fs/cgroup/user.slice/cgroup.controllers", "cpu memory pids\n");
    put("proc/self/status", "Name:\tmlenv\nNoNewPrivs:\t0\nSeccomp:\t2\n");
    put("sys/fs/cgroup/user.slice/job/cgroup.procs", "4711\n");
    from_.usable_processors = [] { return known<std::uint64_t>(4, "sched_getaffinity"); };
    link("proc/self/ns/pid", "pid:[4026531836]");
    put("proc/1/comm", "systemd\n");
    for (const char* folder :
         {"proc/driver", "sys/module", "sys/bus/pci/devices", "dev/shm", "sys/class/net"}) {
      make_folders(root_.path() / folder);
    }
    from_.root = root_.path();
    from_.store = "/var/lib/mlenv";
    from_.ask = [this](const std::vector<std::string>& argv) {
      std::string words;
      for (const std::string& word : argv) words += (words.empty() ? "" : " ") + word;
      const auto found = answers_.find(words);
      return found != answers_.end() ? found->second
                                     : unknown<std::string>("`" + argv[0] + "` is not installed");
    };
    from_.find = [this](std::string_view name) -> std::optional<fs::path> {
      fs::path path = fs::path("/usr/bin") / name;
      if (!engines_.contains(std::string(name))) return std::nullopt;
      answers_[path.string() + " --version"] = known(engines_.at(std::string(name)), path.string());
      return path;
    };
  }
  void put(const std::string& path, const std::string& text) {
    make_folders((root_.path() / path).parent_path());
    write_file(root_.path() / path, text, false);
  }
  void link(const std::string& path, const std::string& target) {
    make_folders((root_.path() / path).parent_path());
    fs::remove(root_.path() / path);
    fs::create_symlink(target, root_.path() / path);
  }
  void says(const std::string& command, const std::string& answer) {
    answers_[command] = known(answer, command);
  }
  void fails(const std::string& command, const std::string& words) {
    answers_[command] = unknown<std::string>(words);
  }
  void load_driver(const std::string& version, bool open) {
    put("proc/driver/nvidia/version",
        open ? "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " + version + "  Release\n"
             : "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + version + "  Tue Jun  6\n");
    put("dev/nvidiactl", "");
    put("dev/nvidia-uvm", "");
  }
  Facts facts() const { return probe_facts(from_); }

  FactSources from_;
  std::map<std::string, Text> answers_;
  std::map<std::string, std::string> engines_;

 private:
  TemporaryFolder root_{temporary_root()};
};

constexpr const char* kQuery =
    "nvidia-smi --query-gpu=index,name,uuid,pci.bus_id,memory.total,mig.mode.current,"
    "ecc.mode.current,persistence_mode,pcie.link.gen.max,pcie.link.width.max";
constexpr const char* kPlain = " --format=csv,noheader,nounits";

TEST_F(RecordedHost, LaptopWithoutGpu) {
  put("proc/cpuinfo",
      "processor\t: 0\nmodel name\t: Some CPU\nphysical id\t: 0\ncore id\t: 0\n"
      "flags\t\t: cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 abm avx avx2 bmi1 bmi2 f16c fma "
      "movbe xsave avx_vnni\n\n"
      "processor\t: 1\nmodel name\t: Some CPU\nphysical id\t: 0\ncore id\t: 0\n\n");
  put("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n");
  put("proc/self/limits",
      "Limit   Soft Limit  Hard Limit  Units\n"
      "Max open files            1024                 1048576   files\n"
      "Max locked memory         8388608              unlimited bytes\n");
  put("sys/fs/cgroup/user.slice/memory.max", "max\n");
  put("sys/fs/cgroup/user.slice/job/memory.max", "4294967296\n");
  put("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  engines_ = {{"docker", "Docker version 28.2.2, build e6534b4\n"},
              {"runc", "runc version 1.1.5+ds1\ncommit: x\n"}};
  const Facts found = facts();
  EXPECT_EQ(found.system.distribution.value, "debian");
  EXPECT_EQ(found.system.distribution_title.value, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(found.system.kernel.value, "6.1.0-30-amd64");
  EXPECT_EQ(found.system.architecture.value, "x86_64");
  EXPECT_EQ(found.system.wsl.value, false);
  EXPECT_EQ(found.system.container.value, "none");
  EXPECT_EQ(found.cpu.model.value, "Some CPU");
  EXPECT_EQ(found.cpu.processors.value, 2U);
  EXPECT_EQ(found.cpu.cores.value, 1U);
  EXPECT_EQ(found.cpu.usable.value, 4U);
  EXPECT_EQ(found.cpu.level.value, "x86-64-v3");
  EXPECT_EQ(found.cpu.flags.value,
            (std::vector<std::string>{"avx", "avx2", "avx_vnni", "bmi1", "bmi2", "f16c", "fma",
                                      "popcnt", "sse4_1", "sse4_2", "ssse3"}));
  EXPECT_EQ(found.cpu.limit_millicpus.value, Limit{1500});
  EXPECT_EQ(found.memory.total_bytes.value, 16384000000U);
  EXPECT_FALSE(found.memory.swap_bytes);
  EXPECT_EQ(found.memory.swap_bytes.source, "/proc/meminfo does not say SwapTotal");
  EXPECT_EQ(found.memory.limit_bytes.value, Limit{4294967296});
  EXPECT_EQ(found.memory.limit_bytes.source, "/sys/fs/cgroup/user.slice/job/memory.max");
  EXPECT_EQ(found.limits.memlock_soft_bytes.value, Limit{8388608});
  EXPECT_EQ(found.limits.memlock_hard_bytes.value, Limit{});
  EXPECT_EQ(found.limits.open_files_soft.value, Limit{1024});
  EXPECT_EQ(found.storage.store.mount_point.value, "/");
  EXPECT_EQ(found.storage.shared_memory.type.value, "tmpfs");
  EXPECT_EQ(found.isolation.cgroup_version.value, "v2");
  EXPECT_EQ(found.isolation.seccomp.value, "filter");
  EXPECT_EQ(found.isolation.unprivileged_user_namespaces.value, true);
  EXPECT_EQ(found.isolation.apparmor_restricts_namespaces.value, false);
  ASSERT_TRUE(found.containers.engines);
  ASSERT_EQ(found.containers.engines->size(), 2U);
  EXPECT_EQ((*found.containers.engines)[0].version.value, "28.2.2");
  EXPECT_EQ((*found.containers.engines)[1].version.value, "1.1.5+ds1");
  EXPECT_EQ(found.nvidia.kernel_driver.value, "none");
  EXPECT_EQ(found.gpus.value, std::vector<Gpu>{});
  EXPECT_FALSE(found.nvidia.mismatch) << "neither yes nor no without a driver";
  EXPECT_EQ(found.network.rdma.value, std::vector<RdmaPort>{});
}

TEST_F(RecordedHost, TwoGpus) {
  load_driver("580.65.06", true);
  put("sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n");
  put("sys/bus/pci/devices/0000:18:00.0/class", "0x030200\n");
  put("sys/bus/pci/devices/0000:19:00.0/vendor", "0x8086\n");
  put("sys/bus/pci/devices/0000:19:00.0/class", "0x030000\n");
  put("sys/module/nvidia_peermem/refcnt", "0\n");
  put("proc/77/comm", "nv-fabricmanage\n");
  put("proc/driver/nvidia-nvswitch/devices/0000:05:00.0/information", "\n");
  says(std::string(kQuery) + ",compute_cap" + kPlain,
       "0, NVIDIA H100 80GB HBM3, GPU-1, 00000000:18:00.0, 81559, Disabled, Enabled, Enabled, 5, "
       "16, 9.0\n"
       "1, NVIDIA H100 80GB HBM3, GPU-2, 00000000:2A:00.0, 81559, Enabled, [N/A], Disabled, 5, 16, "
       "9.0\n");
  says(std::string("nvidia-smi --query-gpu=driver_version") + kPlain, "580.65.06\n580.65.06\n");
  says("nvidia-smi",
       "| NVIDIA-SMI 580.65.06    Driver Version: 580.65.06   CUDA Version: 13.0 |\n");
  says("nvidia-smi topo -m",
       "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\x1b[0m\n"
       "GPU0\t X \tNV18\tPIX\t0-47\t0\nGPU1\tNV18\t X \tSYS\t0-47\t0\n"
       "NIC0\tPIX\tSYS\t X\n\nLegend:\n");
  put("etc/cdi/nvidia.yaml",
      "---\ncdiVersion: 0.5.0\ndevices:\n- containerEdits:\n"
      "    deviceNodes:\n    - path: /dev/nvidia0\n  name: \"0\"\n"
      "- containerEdits: {}\n  name: all\nkind: nvidia.com/gpu\n");
  const Facts found = facts();
  EXPECT_EQ(found.nvidia.kernel_driver.value, "580.65.06");
  EXPECT_EQ(found.nvidia.user_driver.value, "580.65.06");
  EXPECT_EQ(found.nvidia.mismatch.value, false);
  EXPECT_EQ(found.nvidia.open_module.value, true);
  EXPECT_EQ(found.nvidia.cuda_version.value, "13.0");
  EXPECT_EQ(found.nvidia.pci_devices.value, std::vector<std::string>{"0000:18:00.0"});
  EXPECT_EQ(found.nvidia.device_nodes.value, true);
  EXPECT_EQ(found.nvidia.nvswitch.value, true);
  EXPECT_EQ(found.nvidia.fabric_manager.value, true);
  EXPECT_EQ(found.nvidia.persistence_daemon.value, false);
  EXPECT_EQ(found.nvidia.peermem.value, true);
  ASSERT_TRUE(found.gpus) << found.gpus.source;
  ASSERT_EQ(found.gpus->size(), 2U);
  const Gpu& first = found.gpus->front();
  EXPECT_EQ(first.name.value, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(first.pci_address.value, "00000000:18:00.0");
  EXPECT_EQ(first.compute_capability.value, "9.0");
  EXPECT_EQ(first.memory_bytes.value, 85520809984U);
  EXPECT_EQ(first.mig.value, false);
  EXPECT_EQ(first.ecc.value, true);
  EXPECT_EQ(first.pcie_lanes.value, 16U);
  EXPECT_EQ(found.gpus->back().mig.value, true);
  EXPECT_FALSE(found.gpus->back().ecc) << "[N/A] is no `no`";
  ASSERT_TRUE(found.gpu_paths) << found.gpu_paths.source;
  ASSERT_EQ(found.gpu_paths->size(), 1U);
  EXPECT_EQ(found.gpu_paths->front().path.value, "NV18");
  ASSERT_EQ(found.containers.cdi->size(), 1U);
  EXPECT_EQ(found.containers.cdi->front().kind.value, "nvidia.com/gpu");
  EXPECT_EQ(found.containers.cdi->front().devices.value, (std::vector<std::string>{"0", "all"}));
}

TEST_F(RecordedHost, OldNvidiaSmiWithoutComputeCapability) {
  load_driver("470.57.02", false);
  fails(std::string(kQuery) + ",compute_cap" + kPlain,
        "`nvidia-smi` fails with status 2: Field \"compute_cap\" is not a valid field to query.");
  says(std::string(kQuery) + kPlain,
       "0, Tesla V100, GPU-1, 00000000:18:00.0, 16160, [N/A], Enabled, Enabled, 3, 16\n");
  const Facts found = facts();
  EXPECT_EQ(found.nvidia.open_module.value, false);
  ASSERT_TRUE(found.gpus) << found.gpus.source;
  EXPECT_EQ(found.gpus->front().name.value, "Tesla V100");
  EXPECT_EQ(found.gpus->front().compute_capability.source, "this nvidia-smi does not tell");
}

TEST_F(RecordedHost, MismatchedDriver) {
  load_driver("550.54.14", false);
  put("proc/driver/nvidia/gpus/0000:18:00.0/information",
      "Model: \t\t NVIDIA L4\nGPU UUID: \t GPU-9\nBus Location: \t 0000:18:00.0\n");
  fails(std::string(kQuery) + ",compute_cap" + kPlain,
        "`nvidia-smi` fails with status 18: Failed to initialize NVML: Driver/library version "
        "mismatch NVML library version: 580.65");
  const Facts found = facts();
  EXPECT_EQ(found.nvidia.user_driver.value, "580.65");
  EXPECT_EQ(found.nvidia.mismatch.value, true);
  ASSERT_TRUE(found.gpus) << "the kernel module still lists them";
  EXPECT_EQ(found.gpus->front().name.value, "NVIDIA L4");
  EXPECT_FALSE(found.gpus->front().compute_capability);
  EXPECT_FALSE(found.nvidia.cuda_version);
}

TEST_F(RecordedHost, HangingNvidiaSmi) {
  load_driver("550.54.14", false);
  fails(std::string(kQuery) + ",compute_cap" + kPlain, "`nvidia-smi` did not end within 5 s");
  const Facts found = facts();
  EXPECT_FALSE(found.gpus) << "unknown is not `none`";
  EXPECT_NE(found.gpus.source.find("did not end within 5 s"), std::string::npos);
  EXPECT_FALSE(found.nvidia.mismatch);
}

TEST_F(RecordedHost, Wsl) {
  put("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
  put("dev/dxg", "");
  says(std::string(kQuery) + ",compute_cap" + kPlain,
       "0, NVIDIA GeForce RTX 4090, GPU-1, 00000000:01:00.0, 24564, [N/A], [N/A], Enabled, 4, 16, "
       "8.9\n");
  const Facts found = facts();
  EXPECT_EQ(found.system.wsl.value, true);
  EXPECT_FALSE(found.nvidia.kernel_driver);
  EXPECT_EQ(found.nvidia.kernel_driver.source, "WSL: the kernel part is Windows' own");
  EXPECT_EQ(found.nvidia.device_nodes.value, true);
  ASSERT_TRUE(found.gpus) << found.gpus.source;
  EXPECT_EQ(found.gpus->front().compute_capability.value, "8.9");
}

TEST_F(RecordedHost, Container) {
  link("proc/self/ns/pid", "pid:[4026532999]");
  EXPECT_EQ(facts().system.container.value, "unidentified");
  EXPECT_FALSE(facts().nvidia.fabric_manager) << "the host's processes cannot be seen";
  EXPECT_FALSE(facts().time.services);
  put(".dockerenv", "");
  EXPECT_EQ(facts().system.container.value, "docker");
  put("run/systemd/container", "lxc\n");
  EXPECT_EQ(facts().system.container.value, "lxc");
}

TEST_F(RecordedHost, NothingToRead) {
  const TemporaryFolder empty{temporary_root()};
  from_.root = empty.path();
  const Facts found = facts();
  EXPECT_FALSE(found.system.kernel);
  EXPECT_EQ(found.system.kernel.source, "/proc/sys/kernel/osrelease is absent");
  EXPECT_FALSE(found.system.container);
  EXPECT_FALSE(found.cpu.processors);
  EXPECT_FALSE(found.gpus);
  EXPECT_FALSE(found.nvidia.kernel_driver);
  EXPECT_FALSE(found.nvidia.peermem);
  EXPECT_FALSE(found.network.interfaces);
  EXPECT_FALSE(found.network.rdma);
  EXPECT_FALSE(found.isolation.cgroup_version);
  EXPECT_FALSE(found.isolation.unprivileged_user_namespaces);
  EXPECT_EQ(read_facts(render_facts(found), "it"), found);
}

TEST_F(RecordedHost, InfiniBandAndRoce) {
  const std::string ports = "sys/class/infiniband/";
  put(ports + "mlx5_0/ports/1/state", "4: ACTIVE\n");
  put(ports + "mlx5_0/ports/1/link_layer", "InfiniBand\n");
  put(ports + "mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  put(ports + "mlx5_0/device/net/ib0/mtu", "4092\n");
  put(ports + "mlx5_1/ports/1/state", "1: DOWN\n");
  put(ports + "mlx5_1/ports/1/link_layer", "Ethernet\n");
  put(ports + "mlx5_1/ports/1/rate", "2.5 Gb/sec (1X SDR)\n");
  put(ports + "mlx5_1/ports/1/gid_attrs/ndevs/0", "eth2\n");
  put("sys/class/net/eth2/type", "1\n");
  put("sys/class/net/eth2/operstate", "up\n");
  put("sys/class/net/eth2/speed", "100000\n");
  put("sys/class/net/eth2/device/vendor", "0x15b3\n");
  put("sys/class/net/lo/type", "772\n");
  put("sys/class/net/lo/operstate", "unknown\n");
  put("sys/class/net/docker0/type", "1\n");
  put("sys/class/net/docker0/speed", "-1\n");
  const Facts found = facts();
  ASSERT_TRUE(found.network.rdma);
  ASSERT_EQ(found.network.rdma->size(), 2U);
  const RdmaPort& first = found.network.rdma->front();
  EXPECT_EQ(first.device, "mlx5_0");
  EXPECT_EQ(first.state.value, "ACTIVE");
  EXPECT_EQ(first.link.value, "InfiniBand");
  EXPECT_EQ(first.rate_gbps.value, 400);
  EXPECT_EQ(first.interface.value, "ib0");
  EXPECT_EQ(found.network.rdma->back().rate_gbps.value, 2.5);
  EXPECT_EQ(found.network.rdma->back().interface.value, "eth2");
  ASSERT_EQ(found.network.interfaces->size(), 3U);
  EXPECT_EQ((*found.network.interfaces)[0].kind.value, "virtual");
  EXPECT_FALSE((*found.network.interfaces)[0].speed_mbps);
  EXPECT_EQ((*found.network.interfaces)[1].speed_mbps.value, 100000U);
  EXPECT_EQ((*found.network.interfaces)[1].kind.value, "physical");
  EXPECT_EQ((*found.network.interfaces)[2].kind.value, "loopback");
  EXPECT_FALSE((*found.network.interfaces)[2].state);
}

TEST_F(RecordedHost, OldCgroups) {
  put("proc/self/mountinfo",
      "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "35 27 0:32 /docker/12 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "36 27 0:33 /docker/12 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  put("proc/self/cgroup", "4:memory:/docker/12\n3:cpu,cpuacct:/docker/12\n1:name=systemd:/\n");
  // As in a container: its own folder is the mount's first, the path the host's.
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(facts().isolation.cgroup_version.value, "v1");
  EXPECT_EQ(facts().isolation.cgroup_controllers.value,
            (std::vector<std::string>{"cpu", "cpuacct", "memory"}));
  EXPECT_EQ(facts().memory.limit_bytes.value, Limit{2147483648});
  EXPECT_EQ(facts().cpu.limit_millicpus.value, Limit{});
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(facts().memory.limit_bytes.value, Limit{});
}

TEST_F(RecordedHost, OldAndNewCgroups) {
  put("proc/self/mountinfo",
      "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "36 27 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "41 27 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  put("proc/self/cgroup", "4:memory:/jobs/7\n0::/jobs/7\n");
  put("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "1073741824\n");
  put("sys/fs/cgroup/unified/jobs/7/memory.max", "1\n");
  put("sys/fs/cgroup/unified/jobs/7/cpu.max", "250000 100000\n");
  const Facts found = facts();
  EXPECT_EQ(found.isolation.cgroup_version.value, "hybrid");
  EXPECT_EQ(found.memory.limit_bytes.value, Limit{1073741824}) << "v1 has the memory";
  EXPECT_EQ(found.cpu.limit_millicpus.value, Limit{2500}) << "v2 has the processors";
}

TEST_F(RecordedHost, CgroupsThatCannotBeSeenAreNoUnlimited) {
  put("proc/self/cgroup", "0::/elsewhere\n");
  EXPECT_FALSE(facts().memory.limit_bytes) << "the folder is not there";
  EXPECT_EQ(facts().memory.limit_bytes.source,
            "this process's cgroup of `memory`, `/elsewhere`, cannot be seen below /sys/fs/cgroup");
  put("proc/self/cgroup", "0::/../../job\n");
  EXPECT_FALSE(facts().cpu.limit_millicpus) << "above the cgroup namespace";
  put("proc/self/cgroup", "4:memory:/job\n0::/user.slice/job\n");
  EXPECT_EQ(facts().memory.limit_bytes.source, "the cgroup of `memory` is mounted nowhere here");
  EXPECT_EQ(facts().cpu.limit_millicpus.value, Limit{}) << "v2's folders have no quota";
  put("sys/fs/cgroup/user.slice/cpu.max", "a b\n");
  EXPECT_FALSE(facts().cpu.limit_millicpus);
  put("proc/self/mountinfo", "27 1 254:0 / / rw - ext4 /dev/vda rw\n");
  EXPECT_EQ(facts().isolation.cgroup_version.value, "none");
  EXPECT_FALSE(facts().cpu.limit_millicpus) << "not mounted here, and there all the same";
  put("proc/self/cgroup", "1:name=systemd:/\n");
  EXPECT_EQ(facts().memory.limit_bytes.value, Limit{}) << "the kernel has no such controller";
}

TEST_F(RecordedHost, UsableProcessorsAreNotGuessed) {
  from_.usable_processors = nullptr;
  EXPECT_EQ(facts().cpu.usable, unknown<std::uint64_t>("not recorded"));
}

TEST(HostSources, CountsTheProcessorsOfTheAffinity) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const Number all = host_sources("/", "/tmp").usable_processors();
  EXPECT_EQ(all.value, static_cast<std::uint64_t>(CPU_COUNT(&before)));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(host_sources("/", "/tmp").usable_processors().value, 1U);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(RecordedHost, CdiFilesOfAnyIndentation) {
  put("etc/cdi/wide.yaml",
      "cdiVersion: 0.6.0\n"
      "kind:     \"nvidia.com/gpu\"\n"
      "devices:\n"
      "      -     name:   gpu0\n"
      "            containerEdits:\n"
      "                  hooks:\n"
      "                  -     hookName: createContainer\n"
      "                        name: not-a-device\n"
      "      -     containerEdits: {}\n"
      "            name:  \"1:0\"\n"
      "containerEdits:\n"
      "      deviceNodes:\n"
      "            -  name: neither\n");
  put("etc/cdi/flow.yaml", "{kind: vendor.com/net, devices: [{name: a}, {name: b}]}\n");
  put("etc/cdi/broken.yaml", "kind: [\n");
  put("etc/cdi/half.json", R"({"kind": "nvidia.com/gpu"})");
  const Facts found = facts();
  ASSERT_TRUE(found.containers.cdi);
  ASSERT_EQ(found.containers.cdi->size(), 4U);
  const CdiFile& broken = (*found.containers.cdi)[0];
  const CdiFile& flow = (*found.containers.cdi)[1];
  const CdiFile& half = (*found.containers.cdi)[2];
  const CdiFile& wide = (*found.containers.cdi)[3];
  EXPECT_FALSE(broken.kind);
  EXPECT_TRUE(broken.devices.source.starts_with("/etc/cdi/broken.yaml: ")) << broken.devices.source;
  EXPECT_EQ(flow.devices.value, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(half.kind.value, "nvidia.com/gpu");
  EXPECT_FALSE(half.devices);
  EXPECT_EQ(wide.kind.value, "nvidia.com/gpu");
  EXPECT_EQ(wide.devices.value, (std::vector<std::string>{"gpu0", "1:0"}));
}

TEST_F(RecordedHost, NvswitchesAreToldByDriverOrBus) {
  EXPECT_EQ(facts().nvidia.nvswitch.value, false) << "the bus has none";
  put("sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de\n");
  put("sys/bus/pci/devices/0000:05:00.0/class", "0x068000\n");
  EXPECT_EQ(facts().nvidia.nvswitch.value, true) << "without a driver";
  EXPECT_EQ(facts().nvidia.pci_devices.value, std::vector<std::string>{}) << "it is no GPU";
  const TemporaryFolder without_bus{temporary_root()};
  make_folders(without_bus.path() / "proc/driver");
  from_.root = without_bus.path();
  EXPECT_EQ(facts().nvidia.nvswitch, unknown<bool>("/sys/bus/pci/devices is absent"));
}

TEST_F(RecordedHost, RestrictedUbuntu) {
  put("etc/os-release", "ID=ubuntu\nVERSION_ID=\"24.04\"\nVERSION_CODENAME=noble\n");
  put("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
  put("proc/sys/kernel/unprivileged_userns_clone", "1\n");
  put("proc/sys/user/max_user_namespaces", "63000\n");
  put("sys/module/apparmor/parameters/enabled", "Y\n");
  put("proc/self/attr/apparmor/current", "unconfined\n");
  put("run/systemd/timesync/synchronized", "");
  put("proc/55/comm", "systemd-timesyn\n");
  const Facts found = facts();
  EXPECT_EQ(found.system.distribution_version.value, "24.04");
  EXPECT_EQ(found.isolation.apparmor_restricts_namespaces.value, true);
  EXPECT_EQ(found.isolation.unprivileged_user_namespaces.value, true);
  EXPECT_EQ(found.isolation.max_user_namespaces.value, 63000U);
  EXPECT_EQ(found.isolation.apparmor_profile.value, "unconfined");
  EXPECT_EQ(found.time.synchronised.value, true);
  EXPECT_EQ(found.time.services.value, std::vector<std::string>{"systemd-timesyncd"});
}

TEST_F(RecordedHost, NameOnLoopback) {
  put("etc/hosts", "127.0.0.1 localhost\n127.0.1.1 node1.example node1 # Debian's own\n");
  EXPECT_EQ(facts().network.host_addresses.value, std::vector<std::string>{"127.0.1.1"});
  EXPECT_EQ(facts().network.host_is_loopback.value, true);
  says("getent ahosts node1", "192.0.2.7 STREAM node1\n192.0.2.7 DGRAM\nfd00::7 STREAM\n");
  EXPECT_EQ(facts().network.host_addresses.value,
            (std::vector<std::string>{"192.0.2.7", "fd00::7"}));
  EXPECT_EQ(facts().network.host_is_loopback.value, false);
}

}  // namespace
}  // namespace mlenv
