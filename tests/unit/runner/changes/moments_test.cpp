#include "tests/unit/runner/changes/moments.hpp"
#include "tests/support/from_test.hpp"

#include <gtest/gtest.h>

#include "base/size_limits.hpp"
#include "recipes/text.hpp"

namespace mlenv::test {
namespace {

Text moment_text(const char* value) { return from_test<std::string>(value); }

Gpu gpu(std::uint64_t index) {
  Gpu out;
  out.index = index;
  out.name = moment_text("NVIDIA H100 80GB HBM3");
  out.uuid = from_test<std::string>("GPU-" + std::to_string(index));
  out.pci_address = moment_text("0000:17:00.0");
  out.compute_capability = moment_text("9.0");
  out.memory_bytes = from_test(80 * size_limit::kGiB);
  out.mig = from_test(false);
  out.ecc = from_test(true);
  out.persistence = from_test(true);
  out.pcie_generation = from_test(std::uint64_t{5});
  out.pcie_lanes = from_test(std::uint64_t{16});
  out.nvlinks = from_test(std::uint64_t{18});
  return out;
}

DiskFacts disk_facts(const char* path, const char* type, std::uint64_t size) {
  return {moment_text(path), moment_text("/"), moment_text(type),
          from_test(false),  from_test(size),  from_test(size)};
}

void fill_gpus(Facts& host) {
  host.nvidia.kernel_driver = moment_text("570.172.08");
  host.nvidia.user_driver = moment_text("570.172.08");
  host.nvidia.mismatch = from_test(false);
  host.nvidia.open_module = from_test(true);
  host.nvidia.cuda_version = moment_text("12.8");
  host.nvidia.cuda_status = from_test(std::uint64_t{0});
  host.nvidia.pci_devices = from_test(std::vector<std::string>{"0000:17:00.0", "0000:18:00.0"});
  host.nvidia.device_nodes = from_test(true);
  host.nvidia.nvswitch = from_test(true);
  host.nvidia.fabric_manager = from_test(true);
  host.nvidia.persistence_daemon = from_test(true);
  host.nvidia.peermem = from_test(true);
  host.nvidia.dma_buf = from_test(true);
  host.gpus = from_test(std::vector<Gpu>{gpu(0), gpu(1)});
  host.gpu_paths = from_test(std::vector<GpuPath>{{0, 1, moment_text("NV18")}});
}

void fill_network(Facts& host) {
  NetworkInterface wired{"ens3f0",
                         moment_text("physical"),
                         moment_text("up"),
                         from_test(std::uint64_t{100000}),
                         from_test(std::uint64_t{1500}),
                         from_test(std::vector<std::string>{"192.0.2.7/24"})};
  host.network.interfaces = from_test(std::vector<NetworkInterface>{wired});
  RdmaPort port{
      "mlx5_0",        1, moment_text("InfiniBand"), moment_text("ACTIVE"), moment_text("ibs3"),
      from_test(400.0)};
  host.network.rdma = from_test(std::vector<RdmaPort>{port});
  host.network.host_name = moment_text("node17");
  host.network.host_addresses = from_test(std::vector<std::string>{"192.0.2.7"});
  host.network.host_is_loopback = from_test(false);
}

}  // namespace

Facts whole_host() {
  Facts host;
  host.system = {moment_text("debian"),
                 moment_text("12"),
                 moment_text("bookworm"),
                 moment_text("Debian 12"),
                 moment_text("6.1.0-41-amd64"),
                 moment_text("x86_64"),
                 from_test(false),
                 moment_text("none"),
                 from_test(std::uint64_t{1000})};
  host.cpu.model = moment_text("AMD EPYC 9354");
  host.cpu.usable = from_test(std::uint64_t{64});
  host.cpu.flags = from_test(std::vector<std::string>{"avx", "avx2", "avx512f"});
  host.cpu.limit_millicpus = from_test(Limit{});
  host.memory = {from_test(512 * size_limit::kGiB), from_test(400 * size_limit::kGiB),
                 from_test(8 * size_limit::kGiB), from_test(Limit{256 * size_limit::kGiB}),
                 from_test(std::vector<NumaNode>(2))};
  host.storage = {disk_facts("/store", "ext4", 900 * size_limit::kGiB),
                  disk_facts("/tmp", "ext4", 900 * size_limit::kGiB),
                  disk_facts("/dev/shm", "tmpfs", 64 * size_limit::kGiB)};
  host.limits = {from_test(Limit{}), from_test(Limit{}), from_test(Limit{65536}),
                 from_test(Limit{524288})};
  host.isolation.apparmor_profile = moment_text("unconfined");
  host.isolation.selinux = moment_text("disabled");
  host.isolation.seccomp = moment_text("disabled");
  host.isolation.sandbox = from_test(true);
  fill_gpus(host);
  fill_network(host);
  host.time = {from_test(true), from_test(std::vector<std::string>{"chronyd"}), moment_text("tsc")};
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
  code.commit = moment_text("1f1f1f1f1f1f1f1f");
  code.branch = moment_text("main");
  code.changed = from_test(std::vector<std::string>{});
  code.changed_digest = moment_text("sha256:00");
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
