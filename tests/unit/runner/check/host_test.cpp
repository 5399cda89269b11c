#include <gtest/gtest.h>

#include "tests/support/from_test.hpp"
#include "tests/support/strings.hpp"
#include "tests/unit/runner/check/pair.hpp"

namespace mlenv {
namespace {

using test::Pair;
using test::plain_on_cpu;
using test::torch_on_h100;
TEST(Architecture, Differs) {
  Pair pair = plain_on_cpu();
  pair.image.architecture = "arm64";
  EXPECT_EQ(pair.found(), "architecture-differs");
  EXPECT_EQ(pair.finding("architecture-differs").found, "amd64");
  pair.host.system.architecture = from_test<std::string>("aarch64");
  EXPECT_EQ(pair.found(), "");
  pair.image.architecture = "arm";
  EXPECT_EQ(pair.found(), "");
  pair.image.architecture = "386";
  EXPECT_EQ(pair.found(), "architecture-differs");
  pair.host.system.architecture = unknown<std::string>("?");
  EXPECT_EQ(pair.unjudged(), "architecture-differs");
}

TEST(LibraryMissing, DriversOwnAreTheHosts) {
  Pair pair = plain_on_cpu();
  EXPECT_EQ(pair.found(), "");
  pair.image.missing_libraries = from_test(std::vector<MissingLibrary>{
      {"libcuda.so.1", "/t.so", 3, true}, {"libGL.so.1", "/cv2.so", 2, false}});
  EXPECT_EQ(pair.found(), "library-missing");
  EXPECT_EQ(pair.finding("library-missing").needed, "libGL.so.1");
  EXPECT_EQ(pair.finding("library-missing").found,
            "not where the linker looks, for `/cv2.so` and 1 more");
  EXPECT_EQ(
      pair.finding("library-missing").remedy,
      "add the package that holds it, as Debian names them: `system: [libgl1]` in a recipe, else "
      "as `apt-file search libGL.so.1` says");
  EXPECT_EQ(pair.finding("library-missing").severity, Severity::risks);
}

TEST(LibraryMissing, WhatThePackageLoadsItselfIsWorthKnowingAlone) {
  Pair pair = plain_on_cpu();
  pair.image.missing_libraries = from_test(std::vector<MissingLibrary>{
      {"libc10.so", "/torchvision/_C.so", 1, false, "/torch/lib/libc10.so", false}});
  EXPECT_EQ(pair.finding("library-missing").severity, Severity::note);
}

TEST(LibraryMissing, PluginsAreWorthKnowingAlone) {
  Pair pair = plain_on_cpu();
  const MissingLibrary plugin{"libmpi.so.40", "/bootstrap_mpi.so.3", 1, false, "", true};
  pair.image.missing_libraries = from_test(std::vector<MissingLibrary>{plugin});
  EXPECT_EQ(pair.finding("library-missing").severity, Severity::note);
  pair.image.missing_libraries =
      from_test(std::vector<MissingLibrary>{{"libGL.so.1", "/cv2.so", 2, false}, plugin});
  EXPECT_EQ(pair.finding("library-missing").severity, Severity::risks);
  EXPECT_EQ(pair.finding("library-missing").needed, "libGL.so.1");
}

TEST(ImportFails, OnlyWhereSomebodyTried) {
  Pair pair = plain_on_cpu();
  EXPECT_EQ(pair.found(), "");
  pair.image.failed_imports = from_test(std::vector<FailedImport>{});
  EXPECT_EQ(pair.found(), "");
  pair.image.failed_imports = from_test(std::vector<FailedImport>{
      {"lightgbm", "4.6.0", "lightgbm", "OSError: libgomp.so.1: …", "libgomp.so.1", ""}});
  EXPECT_EQ(pair.found(), "import-fails");
  EXPECT_EQ(pair.finding("import-fails").severity, Severity::risks);
  EXPECT_EQ(pair.finding("import-fails").needed, "`import lightgbm`");
  EXPECT_EQ(pair.finding("import-fails").remedy, "add `system: [libgomp1]` to the recipe");
}

TEST(SymbolVersion, OfTheCLibrary) {
  Pair pair = plain_on_cpu();
  pair.image.glibc = from_test(SymbolVersions{"GLIBC_2.36", "/x", "GLIBC_2.36"});
  EXPECT_EQ(pair.found(), "");
  pair.image.glibc = from_test(SymbolVersions{"GLIBC_2.38", "/x", "GLIBC_2.36"});
  EXPECT_EQ(pair.found(), "symbol-version-missing");
  EXPECT_EQ(
      pair.finding("symbol-version-missing").remedy,
      "take a newer base (`base: ubuntu:noble`) that has GLIBC_2.38, or packages built for an "
      "older one");
  pair.image.glibc = from_test(SymbolVersions{"GLIBC_2.9", "/x", "GLIBC_2.36"});
  EXPECT_EQ(pair.found(), "");
  pair.image.glibc = from_test(SymbolVersions{"GLIBC_2.17", "/x", ""});
  EXPECT_EQ(pair.found(), "symbol-version-missing");
}

TEST(SymbolVersion, OfOtherLibraries) {
  Pair pair = plain_on_cpu();
  pair.image.libstdcxx = from_test(SymbolVersions{"GLIBCXX_3.4.32", "/x", "GLIBCXX_3.4.30"});
  pair.image.missing_versions =
      from_test(std::vector<MissingVersion>{{"libstdc++.so.6", "GLIBCXX_3.4.32", "/x", 1}});
  EXPECT_EQ(pair.finding("symbol-version-missing").needed, "GLIBCXX_3.4.32 of libstdc++ (`/x`)");
  pair.image.libstdcxx = unknown<SymbolVersions>("?");
  EXPECT_EQ(pair.finding("symbol-version-missing").needed,
            "GLIBCXX_3.4.32 of libstdc++.so.6 (`/x`)");
}

TEST(CpuInstructions, WatchedFlagsAreMissed) {
  Pair pair = plain_on_cpu();
  pair.image.cpu = from_test(std::vector<CpuNeed>{{"tensorflow 2.21.0", {"avx", "sse4_2"}}});
  EXPECT_EQ(pair.found(), "");
  pair.image.cpu = from_test(std::vector<CpuNeed>{{"tensorflow 2.21.0", {"avx", "avx512f"}}});
  EXPECT_EQ(pair.finding("cpu-instructions").needed, "avx512f for tensorflow 2.21.0");
  // Of the level, though the list does not name them; and what nothing names.
  pair.image.cpu = from_test(std::vector<CpuNeed>{{"x", {"cx16", "movbe", "sse2"}}});
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "");
  pair.image.cpu = unknown<std::vector<CpuNeed>>("known after the build");
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.verdict().word(), "unknown");
  EXPECT_EQ(pair.verdict().unjudged.front().fact, "image cpu");
  pair.image.architecture = "arm64";
  EXPECT_EQ(pair.unjudged(), "");
  pair.image.architecture = "amd64";
  pair.image.cpu = from_test(std::vector<CpuNeed>{{"x", {"waitpkg"}}});
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "cpu-instructions");
  pair.host.cpu.flags = unknown<Strings>("?");
  EXPECT_EQ(pair.unjudged(), "cpu-instructions");
}

TEST(KernelTooOld, Boundary) {
  Pair pair = plain_on_cpu();
  pair.image.least_kernel = from_test<std::string>("6.1.0");
  EXPECT_EQ(pair.found(), "");
  pair.image.least_kernel = from_test<std::string>("6.1.1");
  EXPECT_EQ(pair.found(), "kernel-too-old");
  EXPECT_TRUE(pair.finding("kernel-too-old")
                  .remedy.starts_with("update the host's kernel to 6.1.1 or newer"));
  pair.host.system.kernel = from_test<std::string>("6.10.0-rc1");
  EXPECT_EQ(pair.found(), "");
  pair.image.least_kernel = from_test<std::string>("");
  EXPECT_EQ(pair.unjudged(), "");
  pair.image.least_kernel = unknown<std::string>("known after the build");
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.verdict().word(), "unknown");
  EXPECT_EQ(pair.verdict().unjudged.front().fact, "image least_kernel");
}

TEST(TwoCudaRuntimes, OfDifferentReleases) {
  Pair pair = torch_on_h100();
  pair.image.cuda_runtimes = from_test(std::vector<FoundLibrary>{
      {"/usr/local/cuda/lib64/libcudart.so.12", "12.8.57"}, {"/v/libcudart.so.12", "12.8.90"}});
  EXPECT_EQ(pair.found(), "");
  pair.image.cuda_runtimes = from_test(std::vector<FoundLibrary>{
      {"/usr/local/cuda/lib64/libcudart.so.12", "12.4.127"}, {"/v/libcudart.so.12", "12.8.90"}});
  EXPECT_EQ(pair.found(), "two-cuda-runtimes");
  // A copy within a library is its own.
  pair.image.cuda_runtimes = from_test(
      std::vector<FoundLibrary>{{"/v/libcudart.so.12", "12.8.90"}, {"/v/libnccl.so.2", "12.4.0"}});
  EXPECT_EQ(pair.found(), "");
}

TEST(WastedBytes, FromTenMegabytesOn) {
  Pair pair = plain_on_cpu();
  pair.image.waste = from_test(std::vector<Waste>{{"pip-cache", 9'000'000, 4}});
  EXPECT_EQ(pair.found(), "");
  pair.image.waste =
      from_test(std::vector<Waste>{{"pip-cache", 9'000'000, 4}, {"shadowed", 1'000'000, 1}});
  EXPECT_EQ(pair.found(), "wasted-bytes");
  EXPECT_EQ(pair.finding("wasted-bytes").found, "10 MB (pip-cache 9 MB, shadowed 1 MB)");
}

TEST(Namespaces, WithTheReason) {
  Pair pair = plain_on_cpu();
  pair.host.isolation.sandbox = from_test(false);
  EXPECT_EQ(pair.finding("namespaces-forbidden").found, "mlenv's sandbox does not work");
  pair.host.isolation.apparmor_restricts_namespaces = from_test(true);
  EXPECT_NE(pair.finding("namespaces-forbidden").found.find("AppArmor"), std::string::npos);
  pair.host.system.container = from_test<std::string>("docker");
  EXPECT_NE(pair.finding("namespaces-forbidden").remedy.find("seccomp=unconfined"),
            std::string::npos);
  pair.host.isolation.unprivileged_user_namespaces = from_test(false);
  EXPECT_NE(pair.finding("namespaces-forbidden").found.find("userns_clone"), std::string::npos);
  pair.host.isolation.max_user_namespaces = from_test<std::uint64_t>(0);
  EXPECT_NE(pair.finding("namespaces-forbidden").found.find("max_user"), std::string::npos);
  pair.host.isolation.sandbox = from_test(true);
  EXPECT_EQ(pair.found(), "");
  pair.host.isolation.sandbox = unknown<bool>("?");
  EXPECT_EQ(pair.unjudged(), "namespaces-forbidden");
}

TEST(SharedMemory, SixtyFourMebibytesAreSmall) {
  Pair pair = torch_on_h100();
  pair.host.storage.shared_memory.size_bytes = from_test<std::uint64_t>(67108864);
  EXPECT_EQ(pair.found(), "shared-memory-small");
  pair.host.storage.shared_memory.size_bytes = from_test<std::uint64_t>(67108865);
  EXPECT_EQ(pair.found(), "");
  pair.use.shm_bytes = 1000;
  EXPECT_EQ(pair.found(), "shared-memory-small");
}

TEST(OpenFiles, Low) {
  Pair pair = torch_on_h100();
  pair.host.limits.open_files_hard = from_test(Limit{4096});
  EXPECT_EQ(pair.found(), "open-files-low");
  pair.host.limits.open_files_hard = from_test(Limit{4097});
  EXPECT_EQ(pair.found(), "");
  pair.host.limits.open_files_soft = from_test(Limit{1023});
  EXPECT_EQ(pair.found(), "open-files-low");
  pair.host.limits.open_files_soft = from_test(Limit{});
  EXPECT_EQ(pair.found(), "");
}

TEST(User, NeedsAName) {
  Pair pair = plain_on_cpu();
  pair.use.user = "33:100";
  EXPECT_EQ(pair.found(), "");
  pair.use.user = "1000";
  EXPECT_EQ(pair.found(), "user-without-name");
  pair.use.user = "somebody";
  EXPECT_EQ(pair.found(), "");
  pair.use.user.clear();
  pair.host.system.user_id = from_test<std::uint64_t>(1002700000);
  EXPECT_EQ(pair.found(), "");
  pair.host.system.container = from_test<std::string>("kubernetes");
  EXPECT_EQ(pair.found(), "user-without-name");
  pair.image.user = from_test<std::string>("1001");
  EXPECT_EQ(pair.found(), "user-without-name");
  pair.image.user_ids = unknown<Strings>("?");
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "user-without-name");
}

TEST(User, RootNeedsNoneWhereNobodyHasOne) {
  Pair pair = plain_on_cpu();
  pair.image.user_ids = from_test(Strings{});  // no /etc/passwd
  EXPECT_EQ(pair.found(), "");
  pair.use.user = "0:0";
  EXPECT_EQ(pair.found(), "");
  pair.use.user = "1000";
  EXPECT_EQ(pair.found(), "user-without-name");
  pair.use.user.clear();
  pair.image.user_ids = from_test(Strings{"33"});  // there are names, and root has none
  EXPECT_EQ(pair.found(), "user-without-name");
}

TEST(DiskSpace, Boundary) {
  Pair pair = plain_on_cpu();
  pair.host.storage.store.free_bytes = from_test<std::uint64_t>(9'000'000'000);
  EXPECT_EQ(pair.found(), "");
  pair.host.storage.store.free_bytes = from_test<std::uint64_t>(8'999'999'999);
  EXPECT_EQ(pair.found(), "disk-space");
  pair.image.packed_bytes =
      from_test<std::uint64_t>(3'000'000'000);  // is there beside what it unpacks to
  pair.host.storage.store.free_bytes = from_test<std::uint64_t>(12'000'000'000);
  EXPECT_EQ(pair.found(), "");
  pair.host.storage.store.free_bytes = from_test<std::uint64_t>(11'999'999'999);
  EXPECT_EQ(pair.finding("disk-space").needed, "12.0 GB to pull and unpack the image");
  // Of what is there, the rest.
  pair.use.bytes_to_store = 11'999'999'999;
  EXPECT_EQ(pair.found(), "");
  pair.use.bytes_to_store = 12'000'000'000;
  EXPECT_EQ(pair.finding("disk-space").needed, "12.0 GB to unpack the image");
  pair.use.bytes_to_store = 0;
  pair.host.storage.store.free_bytes = unknown<std::uint64_t>("?");
  EXPECT_EQ(pair.unjudged(), "");
  pair.use.bytes_to_store.reset();
  EXPECT_EQ(pair.unjudged(), "disk-space");
  pair.image.unpacked_bytes = unknown<std::uint64_t>("known after the build");
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "");
}

Pair with_rdma(const char* state) {
  Pair pair = torch_on_h100();
  RdmaPort port;
  port.device = "mlx5_0";
  port.port = 1;
  port.state = from_test<std::string>(state);
  pair.host.network.rdma = from_test(std::vector<RdmaPort>{port});
  return pair;
}

TEST(Memlock, MattersToActivePorts) {
  Pair pair = with_rdma("ACTIVE");
  EXPECT_EQ(pair.found(), "");
  pair.host.limits.memlock_soft_bytes = from_test(Limit{(1ULL << 30U) - 1});
  EXPECT_EQ(pair.found(), "memlock-low");
  pair.host.limits.memlock_soft_bytes = from_test(Limit{1ULL << 30U});
  EXPECT_EQ(pair.found(), "");
  pair = with_rdma("DOWN");
  pair.host.limits.memlock_soft_bytes = from_test(Limit{65536});
  EXPECT_EQ(pair.found(), "");
}

TEST(Memlock, MattersToNcclOnGpus) {
  Pair pair = with_rdma("ACTIVE");
  pair.host.limits.memlock_soft_bytes = from_test(Limit{65536});
  EXPECT_EQ(pair.found(), "memlock-low");
  const ImageFacts image = pair.image;
  pair.image.nccl = from_test(std::vector<FoundLibrary>{});
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "");
  pair.image.nccl = unknown<std::vector<FoundLibrary>>("known after the build");
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "memlock-low");
  pair.image = image;
  pair.use.gpus = 0;
  EXPECT_EQ(pair.found(), "");
  pair.use.gpus.reset();
  pair.host.network.rdma = unknown<std::vector<RdmaPort>>("no /sys");
  EXPECT_EQ(pair.unjudged(), "memlock-low");
  pair.host.limits.memlock_soft_bytes = from_test(Limit{});
  EXPECT_EQ(pair.unjudged(), "");
  // Whatever is there without CUDA.
  pair = plain_on_cpu();
  pair.host.network.rdma = with_rdma("ACTIVE").host.network.rdma;
  pair.host.limits.memlock_soft_bytes = from_test(Limit{65536});
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "");
}

TEST(GpuDirect, OneOfTwoWays) {
  Pair pair = with_rdma("ACTIVE");
  pair.host.nvidia.dma_buf = from_test(false);
  EXPECT_EQ(pair.found(), "gpudirect-missing");
  pair.host.nvidia.peermem = from_test(true);
  EXPECT_EQ(pair.found(), "");
  pair.host.nvidia.peermem = unknown<bool>("?");
  EXPECT_EQ(pair.unjudged(), "gpudirect-missing");
  pair = with_rdma("DOWN");
  pair.host.nvidia.dma_buf = from_test(false);
  EXPECT_EQ(pair.found(), "");
}

TEST(HostName, MattersToSeveralNodes) {
  Pair pair = torch_on_h100();
  pair.host.network.host_is_loopback = from_test(true);
  EXPECT_EQ(pair.found(), "");
  pair.use.nodes = 2;
  EXPECT_EQ(pair.found(), "host-name-loopback");
  pair.host.network.host_is_loopback = unknown<bool>("?");
  EXPECT_EQ(pair.unjudged(), "host-name-loopback");
}

void set_interfaces(Pair& pair, const Strings& names) {
  std::vector<NetworkInterface> all;
  for (const std::string& name : names) {
    NetworkInterface one;
    one.name = name;
    one.state = from_test<std::string>("up");
    one.addresses = from_test(Strings{"192.0.2.2/24"});
    all.push_back(one);
  }
  pair.host.network.interfaces = from_test(all);
}

std::string found_with_variable(const char* name, const char* value, const Strings& interfaces) {
  Pair pair = torch_on_h100();
  pair.image.environment = {{name, value}};
  set_interfaces(pair, interfaces);
  return pair.found();
}

TEST(Interface, NcclMatchesByPrefix) {
  const char* nccl = "NCCL_SOCKET_IFNAME";
  EXPECT_EQ(found_with_variable(nccl, "eth0", {"eth0", "lo"}), "");
  EXPECT_EQ(found_with_variable(nccl, "eth", {"eth0", "eth1", "lo"}), "interface-choice");
  EXPECT_EQ(found_with_variable(nccl, "eth1", {"eth1", "eth10"}), "interface-choice");
  EXPECT_EQ(found_with_variable(nccl, "=eth1", {"eth1", "eth10"}), "");
  EXPECT_EQ(found_with_variable(nccl, "=eth", {"eth1", "eth10"}), "interface-choice");
  EXPECT_EQ(found_with_variable(nccl, "ens3", {"eth0"}), "interface-choice");
  EXPECT_EQ(found_with_variable(nccl, "eth0,eth1", {"eth0", "eth1"}), "");
  EXPECT_EQ(found_with_variable(nccl, "^docker,lo", {"eth0", "docker0", "lo"}), "");
  EXPECT_EQ(found_with_variable(nccl, "^docker,lo", {"docker0", "lo"}), "interface-choice");
}

TEST(Interface, GlooMatchesExactly) {
  const char* gloo = "GLOO_SOCKET_IFNAME";
  EXPECT_EQ(found_with_variable(gloo, "eth0", {"eth0", "eth01"}), "");
  EXPECT_EQ(found_with_variable(gloo, "eth", {"eth0"}), "interface-choice");
}

TEST(Interface, WithoutAVariableOnSeveralNodes) {
  Pair pair = torch_on_h100();
  set_interfaces(pair, {"docker0", "lo"});
  EXPECT_EQ(pair.found(), "");
  pair.use.nodes = 2;
  EXPECT_EQ(pair.found(), "interface-choice");
  set_interfaces(pair, {"docker0", "ens3", "lo"});
  EXPECT_EQ(pair.found(), "");
  pair.host.network.interfaces = unknown<std::vector<NetworkInterface>>("?");
  EXPECT_EQ(pair.unjudged(), "interface-choice");
}

TEST(Clock, Unsynchronised) {
  Pair pair = plain_on_cpu();
  pair.host.time.synchronised = from_test(false);
  EXPECT_EQ(pair.found(), "clock-unsynchronised");
}

TEST(Wsl, IsTold) {
  Pair pair = plain_on_cpu();
  pair.host.system.wsl = from_test(true);
  EXPECT_EQ(pair.found(), "wsl");
}

TEST(DriversDiffer, BetweenHostsThatWorkTogether) {
  const Pair one = torch_on_h100();
  Pair other = one;
  Use use;
  use.nodes = 2;
  const auto judged = [&] {
    return judge_together(
        std::vector<Rank>{{&one.image, &one.host, "a"}, {&one.image, &other.host, "b"}}, use);
  };
  EXPECT_EQ(judged(), Verdict{});
  test::set_driver(other.host, "580.65.06", "13.0");
  ASSERT_EQ(judged().findings.size(), 1U);
  EXPECT_EQ(judged().findings.front().rule, "drivers-differ");
  EXPECT_EQ(judged().findings.front().found, "570.172.08 on a; 580.65.06 on b");
  EXPECT_EQ(judged().findings.front().remedy,
            "update the others to 580.65.06: what runs on one host then runs on all");
  EXPECT_EQ(judged().findings.front().severity, Severity::note);
  use.nodes = 1;
  EXPECT_EQ(judged(), Verdict{});
  use.nodes = 2;
  use.gpus = 0;
  EXPECT_EQ(judged(), Verdict{});
  use.gpus.reset();
  other.host.nvidia.kernel_driver = unknown<std::string>("?");
  other.host.nvidia.user_driver = unknown<std::string>("?");
  EXPECT_EQ(judged(), Verdict{});
}

TEST(Interface, OneOfSeveralNetworksOnSeveralNodes) {
  Pair pair = torch_on_h100();
  set_interfaces(pair, {"docker0", "eth0", "eth1", "lo"});
  EXPECT_EQ(pair.found(), "");
  pair.use.nodes = 2;
  auto& all = *pair.host.network.interfaces.value;
  all[1].kind = from_test<std::string>("physical");
  all[2].kind = from_test<std::string>("physical");
  all[2].speed_mbps = from_test<std::uint64_t>(100000);
  EXPECT_EQ(pair.finding("interface-choice").found, "eth0, eth1");
  EXPECT_NE(pair.finding("interface-choice").remedy.find("NCCL_SOCKET_IFNAME==eth1"),
            std::string::npos);
  // One of them is no network of the host's own; or InfiniBand is there, which NCCL takes first.
  all[1].kind = from_test<std::string>("virtual");
  EXPECT_EQ(pair.found(), "");
  set_interfaces(pair, {"eth0", "eth1", "ib0"});
  for (NetworkInterface& one : *pair.host.network.interfaces.value) {
    one.kind = from_test<std::string>("physical");
  }
  EXPECT_EQ(pair.found(), "");
}

TEST(NcclDiffers, BetweenImages) {
  ImageFacts one = torch_on_h100().image;
  ImageFacts other = one;
  other.name = "eval";
  const Facts host = torch_on_h100().host;
  Use use;
  use.nodes = 2;
  const auto judged = [&] {
    return judge_together(std::vector<Rank>{{&one, &host, "a"}, {&other, &host, "a"}}, use);
  };
  EXPECT_EQ(judged(), Verdict{});
  other.nccl = from_test(std::vector<FoundLibrary>{{"/v/libnccl.so.2", "2.28.9"}});
  ASSERT_EQ(judged().findings.size(), 1U);
  EXPECT_EQ(judged().findings.front().rule, "nccl-differs");
  EXPECT_EQ(judged().findings.front().found, "2.27.5 in train, 2.28.9 in eval");
  use.nodes = 1;  // nothing says that the two work together
  EXPECT_EQ(judged(), Verdict{});
  use.nodes = 2;
  use.gpus = 0;
  EXPECT_EQ(judged(), Verdict{});
  use.gpus.reset();
  other.nccl = from_test(std::vector<FoundLibrary>{});  // it has none
  EXPECT_EQ(judged(), Verdict{});
  other.nccl = unknown<std::vector<FoundLibrary>>("?");
  EXPECT_EQ(judged().unjudged.size(), 1U);
}

}  // namespace
}  // namespace mlenv
