#pragma once
// What a host is, as far as it decides whether and how an image runs there. Written on one machine
// (`mlenv facts --json`, schema mlenv.facts/1) and read on another.
//
// Each group lists its members once, in `fields`, by the names that they have in JSON and in the
// text; the end of a name is the unit (`_bytes`, `_mbps`: 10^6 bit/s, `_gbps`: 10^9 bit/s). What
// is no Fact holds for certain: it names the thing that the facts beside it are about.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fact.hpp"

namespace mlenv {

using Text = Fact<std::string>;
using Texts = Fact<std::vector<std::string>>;
using Number = Fact<std::uint64_t>;
using Truth = Fact<bool>;

/// A most, as of setrlimit(2) or a cgroup; nothing: unlimited.
struct Limit {
  std::optional<std::uint64_t> most;
  friend bool operator==(const Limit&, const Limit&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("most", self.most);
  }
};

struct SystemFacts {
  Text distribution;  ///< os-release(5): ID
  Text distribution_version;
  Text distribution_codename;
  Text distribution_title;
  Text kernel;        ///< uname -r
  Text architecture;  ///< uname -m
  Truth wsl;
  /// `none`, or what it calls itself (`docker`, `podman`, `lxc`, …); `unidentified` where only the
  /// namespaces tell that it is one.
  Text container;
  Number user_id;
  friend bool operator==(const SystemFacts&, const SystemFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("distribution", self.distribution);
    visit("distribution_version", self.distribution_version);
    visit("distribution_codename", self.distribution_codename);
    visit("distribution_title", self.distribution_title);
    visit("kernel", self.kernel);
    visit("architecture", self.architecture);
    visit("wsl", self.wsl);
    visit("container", self.container);
    visit("user_id", self.user_id);
  }
};

struct CpuFacts {
  Text model;
  Number processors;  ///< that the kernel runs (logical)
  Number usable;      ///< of them, that this process may run on (its affinity, as `nproc` counts)
  Number cores;
  Number sockets;
  /// `x86-64-v1` to `-v4` (x86-64 psABI); unknown on other architectures.
  Text level;
  Texts flags;  ///< those of the kernel's names that wheels choose their code by; sorted
  /// The least quota of its cgroup and those above that can be seen: 1500 is one and a half
  /// processors.
  Fact<Limit> limit_millicpus;
  friend bool operator==(const CpuFacts&, const CpuFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("processors", self.processors);
    visit("usable", self.usable);
    visit("cores", self.cores);
    visit("sockets", self.sockets);
    visit("level", self.level);
    visit("flags", self.flags);
    visit("limit_millicpus", self.limit_millicpus);
  }
};

struct NumaNode {
  std::uint64_t id = 0;
  Text processors;  ///< `0-15,32-47`
  Number memory_bytes;
  friend bool operator==(const NumaNode&, const NumaNode&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("processors", self.processors);
    visit("memory_bytes", self.memory_bytes);
  }
};

struct MemoryFacts {
  Number total_bytes;
  Number available_bytes;
  Number swap_bytes;
  Fact<Limit> limit_bytes;  ///< the least of its cgroup and those above that can be seen
  Fact<std::vector<NumaNode>> numa;
  friend bool operator==(const MemoryFacts&, const MemoryFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("total_bytes", self.total_bytes);
    visit("available_bytes", self.available_bytes);
    visit("swap_bytes", self.swap_bytes);
    visit("limit_bytes", self.limit_bytes);
    visit("numa", self.numa);
  }
};

/// The file system that a folder is on, or will be once it is made.
struct DiskFacts {
  Text path;
  Text mount_point;
  Text type;  ///< `ext4`, `overlay`, `nfs4`, `tmpfs`, …
  Truth read_only;
  Number size_bytes;
  Number free_bytes;  ///< for an ordinary user
  friend bool operator==(const DiskFacts&, const DiskFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("mount_point", self.mount_point);
    visit("type", self.type);
    visit("read_only", self.read_only);
    visit("size_bytes", self.size_bytes);
    visit("free_bytes", self.free_bytes);
  }
};

struct StorageFacts {
  DiskFacts store;          ///< mlenv's
  DiskFacts temporary;      ///< $TMPDIR
  DiskFacts shared_memory;  ///< /dev/shm
  friend bool operator==(const StorageFacts&, const StorageFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("store", self.store);
    visit("temporary", self.temporary);
    visit("shared_memory", self.shared_memory);
  }
};

/// getrlimit(2) of this process.
struct LimitFacts {
  Fact<Limit> memlock_soft_bytes;
  Fact<Limit> memlock_hard_bytes;
  Fact<Limit> open_files_soft;
  Fact<Limit> open_files_hard;
  friend bool operator==(const LimitFacts&, const LimitFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("memlock_soft_bytes", self.memlock_soft_bytes);
    visit("memlock_hard_bytes", self.memlock_hard_bytes);
    visit("open_files_soft", self.open_files_soft);
    visit("open_files_hard", self.open_files_hard);
  }
};

struct IsolationFacts {
  Text cgroup_version;  ///< `v1`, `v2`, `hybrid` (v1 with v2 beside it), `none`
  Texts cgroup_controllers;
  Number max_user_namespaces;
  Truth unprivileged_user_namespaces;   ///< kernel.unprivileged_userns_clone, where there is one
  Truth apparmor_restricts_namespaces;  ///< kernel.apparmor_restrict_unprivileged_userns
  Text apparmor_profile;                ///< of this process
  Text selinux;                         ///< `enforcing`, `permissive`, `disabled`
  Text seccomp;                         ///< of this process: `disabled`, `strict`, `filter`
  Truth no_new_privileges;
  Truth sandbox;  ///< whether mlenv's own sandbox works, by trying it
  friend bool operator==(const IsolationFacts&, const IsolationFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("cgroup_version", self.cgroup_version);
    visit("cgroup_controllers", self.cgroup_controllers);
    visit("max_user_namespaces", self.max_user_namespaces);
    visit("unprivileged_user_namespaces", self.unprivileged_user_namespaces);
    visit("apparmor_restricts_namespaces", self.apparmor_restricts_namespaces);
    visit("apparmor_profile", self.apparmor_profile);
    visit("selinux", self.selinux);
    visit("seccomp", self.seccomp);
    visit("no_new_privileges", self.no_new_privileges);
    visit("sandbox", self.sandbox);
  }
};

/// A program that runs containers, found on PATH.
struct Engine {
  std::string name;
  std::string path;
  Text version;
  friend bool operator==(const Engine&, const Engine&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("path", self.path);
    visit("version", self.version);
  }
};

struct CdiFile {
  std::string path;
  Text kind;  ///< `nvidia.com/gpu`
  Texts devices;
  friend bool operator==(const CdiFile&, const CdiFile&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("kind", self.kind);
    visit("devices", self.devices);
  }
};

struct ContainerFacts {
  Fact<std::vector<Engine>> engines;  ///< those that are there, sorted
  Fact<std::vector<CdiFile>> cdi;     ///< files in /etc/cdi and /run/cdi (CDI specification)
  friend bool operator==(const ContainerFacts&, const ContainerFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("engines", self.engines);
    visit("cdi", self.cdi);
  }
};

struct NvidiaFacts {
  Text kernel_driver;        ///< version of the loaded module
  Text user_driver;          ///< version of the libraries (libnvidia-ml, libcuda)
  Truth mismatch;            ///< the two differ: nothing works until a reboot
  Truth open_module;         ///< the open kernel module, not the closed one
  Text cuda_version;         ///< that the driver's API is of: `13.0`
  Number cuda_status;        ///< what cuInit returns: 0, or the error that a program would get
  Texts pci_devices;         ///< bus addresses of NVIDIA's display controllers, driver or not
  Truth device_nodes;        ///< /dev/nvidiactl and /dev/nvidia-uvm are there (or WSL's /dev/dxg)
  Truth nvswitch;            ///< the host has NVSwitches of its own
  Truth fabric_manager;      ///< nv-fabricmanager runs
  Truth persistence_daemon;  ///< nvidia-persistenced runs
  Truth peermem;             ///< nvidia-peermem (or nv_peer_mem) is loaded
  Truth dma_buf;             ///< every GPU exports its memory as dma-buf
  friend bool operator==(const NvidiaFacts&, const NvidiaFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("kernel_driver", self.kernel_driver);
    visit("user_driver", self.user_driver);
    visit("mismatch", self.mismatch);
    visit("open_module", self.open_module);
    visit("cuda_version", self.cuda_version);
    visit("cuda_status", self.cuda_status);
    visit("pci_devices", self.pci_devices);
    visit("device_nodes", self.device_nodes);
    visit("nvswitch", self.nvswitch);
    visit("fabric_manager", self.fabric_manager);
    visit("persistence_daemon", self.persistence_daemon);
    visit("peermem", self.peermem);
    visit("dma_buf", self.dma_buf);
  }
};

struct Gpu {
  std::uint64_t index = 0;  ///< NVML's, which is nvidia-smi's: by bus address
  Text name;
  Text uuid;
  Text pci_address;
  Text compute_capability;  ///< `9.0`
  Number memory_bytes;
  Truth mig;
  Truth ecc;
  Truth persistence;
  Number pcie_generation;  ///< the most that GPU and slot can do together, as the next
  Number pcie_lanes;
  Number nvlinks;  ///< links that are up
  friend bool operator==(const Gpu&, const Gpu&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("index", self.index);
    visit("name", self.name);
    visit("uuid", self.uuid);
    visit("pci_address", self.pci_address);
    visit("compute_capability", self.compute_capability);
    visit("memory_bytes", self.memory_bytes);
    visit("mig", self.mig);
    visit("ecc", self.ecc);
    visit("persistence", self.persistence);
    visit("pcie_generation", self.pcie_generation);
    visit("pcie_lanes", self.pcie_lanes);
    visit("nvlinks", self.nvlinks);
  }
};

/// A part of a GPU that is split (Multi-Instance GPU): a compute instance in a GPU instance.
struct MigDevice {
  std::uint64_t gpu = 0;    ///< index
  std::uint64_t index = 0;  ///< among those of its GPU, as `nvidia-smi -L` counts
  Text uuid;                ///< `MIG-…`
  Text name;                ///< `NVIDIA A100-SXM4-40GB MIG 1g.5gb`
  Number gpu_instance;
  Number compute_instance;
  Number memory_bytes;
  friend bool operator==(const MigDevice&, const MigDevice&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("gpu", self.gpu);
    visit("index", self.index);
    visit("uuid", self.uuid);
    visit("name", self.name);
    visit("gpu_instance", self.gpu_instance);
    visit("compute_instance", self.compute_instance);
    visit("memory_bytes", self.memory_bytes);
  }
};

/// How two GPUs reach each other, in the words of `nvidia-smi topo -m`.
struct GpuPath {
  std::uint64_t from = 0;  ///< indices; from < to
  std::uint64_t to = 0;
  Text path;  ///< `NV18`: so many NVLinks; else PIX, PXB, PHB, NODE, SYS, nearest first
  friend bool operator==(const GpuPath&, const GpuPath&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("from", self.from);
    visit("to", self.to);
    visit("path", self.path);
  }
};

/// A port of an RDMA device.
struct RdmaPort {
  std::string device;  ///< `mlx5_0`
  std::uint64_t port = 0;
  Text link;       ///< `InfiniBand`, or `Ethernet` (RoCE)
  Text state;      ///< `ACTIVE`, `DOWN`, `INIT`, `ARMED`
  Text interface;  ///< of the network, that goes with it
  Fact<double> rate_gbps;
  friend bool operator==(const RdmaPort&, const RdmaPort&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("device", self.device);
    visit("port", self.port);
    visit("link", self.link);
    visit("state", self.state);
    visit("interface", self.interface);
    visit("rate_gbps", self.rate_gbps);
  }
};

struct NetworkInterface {
  std::string name;
  Text kind;   ///< `loopback`, `physical`, `virtual`
  Text state;  ///< `up`, `down`, …: the kernel's operational state
  Number speed_mbps;
  Number mtu_bytes;
  Texts addresses;  ///< `192.0.2.2/24`, sorted
  friend bool operator==(const NetworkInterface&, const NetworkInterface&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("kind", self.kind);
    visit("state", self.state);
    visit("speed_mbps", self.speed_mbps);
    visit("mtu_bytes", self.mtu_bytes);
    visit("addresses", self.addresses);
  }
};

struct NetworkFacts {
  Fact<std::vector<NetworkInterface>> interfaces;
  Fact<std::vector<RdmaPort>> rdma;
  Text host_name;
  Texts host_addresses;    ///< that the name resolves to, in the resolver's order
  Truth host_is_loopback;  ///< the first of them is: other hosts are sent to themselves
  friend bool operator==(const NetworkFacts&, const NetworkFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("interfaces", self.interfaces);
    visit("rdma", self.rdma);
    visit("host_name", self.host_name);
    visit("host_addresses", self.host_addresses);
    visit("host_is_loopback", self.host_is_loopback);
  }
};

struct TimeFacts {
  Truth synchronised;  ///< the kernel's clock, as it says
  Texts services;      ///< running ones that keep it so; sorted
  Text clock_source;
  friend bool operator==(const TimeFacts&, const TimeFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("synchronised", self.synchronised);
    visit("services", self.services);
    visit("clock_source", self.clock_source);
  }
};

struct Facts {
  SystemFacts system;
  CpuFacts cpu;
  MemoryFacts memory;
  StorageFacts storage;
  LimitFacts limits;
  IsolationFacts isolation;
  ContainerFacts containers;
  NvidiaFacts nvidia;
  Fact<std::vector<Gpu>> gpus;
  Fact<std::vector<GpuPath>> gpu_paths;
  Fact<std::vector<MigDevice>> mig_devices;
  NetworkFacts network;
  TimeFacts time;
  friend bool operator==(const Facts&, const Facts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("system", self.system);
    visit("cpu", self.cpu);
    visit("memory", self.memory);
    visit("storage", self.storage);
    visit("limits", self.limits);
    visit("isolation", self.isolation);
    visit("containers", self.containers);
    visit("nvidia", self.nvidia);
    visit("gpus", self.gpus);
    visit("gpu_paths", self.gpu_paths);
    visit("mig_devices", self.mig_devices);
    visit("network", self.network);
    visit("time", self.time);
  }
};

/// mlenv.facts/1 on one line, keys sorted, without the newline.
std::string render_facts(const Facts& facts);

/// The other way. `shown` names the text in errors. A fact that it does not hold is unknown, what
/// it holds beyond them is not read. Throws `bad-facts` (usage) for what is no mlenv.facts or has a
/// value of another kind in a fact's place, which is named; `facts-version` for another version of
/// it, and `bad-json`.
Facts read_facts(std::string_view text, std::string_view shown);

}  // namespace mlenv
