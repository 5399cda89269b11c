#include "tests/unit/runner/changes/moments.hpp"

#include <gtest/gtest.h>

#include "recipes/text.hpp"

namespace mlenv::test {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

template <class T>
Fact<T> told(T value) {
  return known(std::move(value), "test");
}
Text text(const char* value) { return told<std::string>(value); }

Gpu gpu(std::uint64_t index) {
  Gpu out;
  out.index = index;
  out.name = text("NVIDIA H100 80GB HBM3");
  out.uuid = told<std::string>("GPU-" + std::to_string(index));
  out.pci_address = text("0000:17:00.0");
  out.compute_capability = text("9.0");
  out.memory_bytes = told(80 * kGiB);
  out.mig = told(false);
  out.ecc = told(true);
  out.persistence = told(true);
  out.pcie_generation = told(std::uint64_t{5});
  out.pcie_lanes = told(std::uint64_t{16});
  out.nvlinks = told(std::uint64_t{18});
  return out;
}

DiskFacts disk(const char* path, const char* type, std::uint64_t size) {
  return {text(path), text("/"), text(type), told(false), told(size), told(size)};
}

void fill_gpus(Facts& host) {
  host.nvidia.kernel_driver = text("570.172.08");
  host.nvidia.user_driver = text("570.172.08");
  host.nvidia.mismatch = told(false);
  host.nvidia.open_module = told(true);
  host.nvidia.cuda_version = text("12.8");
  host.nvidia.cuda_status = told(std::uint64_t{0});
  host.nvidia.pci_devices = told(std::vector<std::string>{"0000:17:00.0", "0000:18:00.0"});
  host.nvidia.device_nodes = told(true);
  host.nvidia.nvswitch = told(true);
  host.nvidia.fabric_manager = told(true);
  host.nvidia.persistence_daemon = told(true);
  host.nvidia.peermem = told(true);
  host.nvidia.dma_buf = told(true);
  host.gpus = told(std::vector<Gpu>{gpu(0), gpu(1)});
  host.gpu_paths = told(std::vector<GpuPath>{{0, 1, text("NV18")}});
}

void fill_network(Facts& host) {
  NetworkInterface wired{"ens3f0",
                         text("physical"),
                         text("up"),
                         told(std::uint64_t{100000}),
                         told(std::uint64_t{1500}),
                         told(std::vector<std::string>{"192.0.2.7/24"})};
  host.network.interfaces = told(std::vector<NetworkInterface>{wired});
  RdmaPort port{"mlx5_0", 1, text("InfiniBand"), text("ACTIVE"), text("ibs3"), told(400.0)};
  host.network.rdma = told(std::vector<RdmaPort>{port});
  host.network.host_name = text("node17");
  host.network.host_addresses = told(std::vector<std::string>{"192.0.2.7"});
  host.network.host_is_loopback = told(false);
}

}  // namespace

Facts whole_host() {
  Facts host;
  host.system = {text("debian"),           text("12"),     text("bookworm"), text("Debian 12"),
                 text("6.1.0-41-amd64"),   text("x86_64"), told(false),      text("none"),
                 told(std::uint64_t{1000})};
  host.cpu.model = text("AMD EPYC 9354");
  host.cpu.usable = told(std::uint64_t{64});
  host.cpu.flags = told(std::vector<std::string>{"avx", "avx2", "avx512f"});
  host.cpu.limit_millicpus = told(Limit{});
  host.memory = {told(512 * kGiB), told(400 * kGiB), told(8 * kGiB), told(Limit{256 * kGiB}),
                 told(std::vector<NumaNode>(2))};
  host.storage = {disk("/store", "ext4", 900 * kGiB), disk("/tmp", "ext4", 900 * kGiB),
                  disk("/dev/shm", "tmpfs", 64 * kGiB)};
  host.limits = {told(Limit{}), told(Limit{}), told(Limit{65536}), told(Limit{524288})};
  host.isolation.apparmor_profile = text("unconfined");
  host.isolation.selinux = text("disabled");
  host.isolation.seccomp = text("disabled");
  host.isolation.sandbox = told(true);
  fill_gpus(host);
  fill_network(host);
  host.time = {told(true), told(std::vector<std::string>{"chronyd"}), text("tsc")};
  return host;
}

RunRecord whole_run() {
  RunRecord run;
  run.state = "done";
  run.start.id = "20260301-120000-0fa4f1";
  run.start.mlenv = "0.1.0";
  run.start.host = "node17";
  run.start.image = {"train", Digest::of("image").str(), Digest::of("lock").str()};
  run.start.argv = {"python", "train.py", "--lr", "0.1", "--output-dir", "/out/a"};
  run.start.env = {{"CUBLAS_WORKSPACE_CONFIG", ":4096:8"}, {"HF_TOKEN", std::nullopt}};
  run.start.mounts = {{"/data/v1", "/data", true}, {"/home/a/out", "/out", false}};
  run.start.devices = {"nvidia.com/gpu=0", "nvidia.com/gpu=1"};
  RunEnd end;
  end.seconds = 3600;
  run.end = end;
  CodeState code;
  code.commit = text("1f1f1f1f1f1f1f1f");
  code.branch = text("main");
  code.changed = told(std::vector<std::string>{});
  code.changed_digest = text("sha256:00");
  run.code = code;
  run.facts = whole_host();
  RunEnvironment installed;
  installed.platform = "linux/amd64";
  installed.wheels = {{"torch", "2.9.1", {}},
                      {"nvidia-cudnn-cu12", "9.10.2.21", {}},
                      {"numpy", "2.3.5", {}},
                      {"nvidia-nccl-cu12", "2.27.5", {}},
                      {"tqdm", "4.67.1", {}},
                      {"nvidia-cublas-cu12", "12.8.4.1", {}},
                      {"nvidia-cuda-runtime-cu12", "12.8.90", {}}};
  installed.debs = {{"libc6", "2.36-9+deb12u13", "amd64"},
                    {"libssl3", "3.0.17-1~deb12u2", "amd64"},
                    {"python3", "3.11.2-1+b1", "amd64"},
                    {"python3.11-minimal", "3.11.2-6", "amd64"},
                    {"less", "590-2", "amd64"}};
  installed.env = {{"PATH", "/opt/venv/bin:/usr/bin"}};
  run.environment = installed;
  return run;
}

RunRecord cpu_run() {
  RunRecord run = whole_run();
  run.start.devices.clear();
  return run;
}

std::string rules_in(const changes::Changes& found) {
  std::vector<std::string> words;
  for (const changes::Change& one : found.found) {
    if (one.weight == changes::Weight::incidental) continue;
    const bool own = one.weight == changes::rule_of(one.rule).weight;
    words.push_back(own ? one.rule : one.rule + '=' + std::string(name_of(one.weight)));
  }
  return join(words, " ");
}

std::string open_in(const changes::Changes& found) {
  std::vector<std::string> words;
  for (const changes::NotCompared& one : found.open) words.push_back(one.what);
  return join(words, ", ");
}

changes::Change finding(const changes::Changes& found, std::string_view rule) {
  for (const changes::Change& one : found.found) {
    if (one.rule == rule) return one;
  }
  ADD_FAILURE() << "no finding " << rule << " among " << rules_in(found);
  return {};
}

changes::Changes between(const RunRecord& from, const RunRecord& to) {
  return changes::changes_between({from, from.facts, "gone"}, {to, to.facts, "gone"});
}

changes::Changes between(const Facts& from, const Facts& to) {
  return changes::changes_between({std::nullopt, from, {}}, {std::nullopt, to, {}});
}

}  // namespace mlenv::test
