#include <gtest/gtest.h>

#include "tests/support/from_test.hpp"
#include "tests/support/strings.hpp"
#include "tests/unit/runner/check/pair.hpp"

namespace mlenv {
namespace {

using test::Pair;
using test::set_driver;
using test::torch_on_h100;
Pair with_driver(const std::string& driver, const std::string& cuda) {
  Pair pair = torch_on_h100();
  set_driver(pair.host, driver, cuda);
  return pair;
}

void set_gpu(Pair& pair, const std::string& name, const std::string& capability) {
  pair.host.gpus = from_test(std::vector<Gpu>{test::gpu(0, name, capability)});
}

void set_compat(Pair& pair, const std::string& cuda, Strings drivers) {
  pair.image.forward_compatibility = from_test(std::vector<ForwardCompatibility>{
      {"/usr/local/cuda/compat/libcuda.so.1", cuda, std::move(drivers), {}}});
}

TEST(DriverTooOld, BelowTheFloorOfTheMajorVersion) {
  EXPECT_EQ(with_driver("525.60.13", "12.0").found(), "minor-version-compatibility");
  const Pair old = with_driver("525.60.12", "11.8");
  EXPECT_EQ(old.found(), "driver-too-old");
  const Finding finding = old.finding("driver-too-old");
  EXPECT_EQ(finding.needed, "driver 525.60.13 or newer for CUDA 12.8 (torch 2.9.1)");
  EXPECT_EQ(finding.found, "driver 525.60.12 (CUDA 11.8)");
  EXPECT_EQ(finding.remedy,
            "update the NVIDIA driver to 525.60.13 or newer, or take a build for CUDA 11");
}

TEST(DriverTooOld, Cuda13NeedsBranch580) {
  for (const auto& [driver, found] :
       {std::pair("579.99.99", "driver-too-old"),
        std::pair("580.10.01", "minor-version-compatibility"), std::pair("580.65.06", "")}) {
    Pair pair = with_driver(driver, driver < std::string("580") ? "12.9" : "13.0");
    pair.image.frameworks = from_test(std::vector<FrameworkBuild>{{"torch", "2.12.0", "13.0"}});
    pair.image.cuda_runtimes =
        from_test(std::vector<FoundLibrary>{{"/v/libcudart.so.13", "13.0.96"}});
    EXPECT_EQ(pair.found(), found) << driver;
  }
}

TEST(DriverTooOld, TheFirstDriverOfCuda11IsBelowItsFloor) {
  Pair pair = with_driver("450.51.05", "11.0");
  pair.image.frameworks = from_test(std::vector<FrameworkBuild>{{"torch", "1.7", "11.0"}});
  pair.image.cuda_runtimes = from_test(std::vector<FoundLibrary>{});
  EXPECT_EQ(pair.found(), "");
  set_driver(pair.host, "450.51.04", "11.0");
  EXPECT_EQ(pair.found(), "driver-too-old");
}

TEST(DriverTooOld, OfAMajorVersionAlone) {
  Pair pair = with_driver("525.60.12", "11.8");
  pair.image.frameworks = from_test(std::vector<FrameworkBuild>{{"jax", "0.4.30", "12"}});
  pair.image.cuda_runtimes = unknown<std::vector<FoundLibrary>>("known after the build");
  EXPECT_EQ(pair.found(), "driver-too-old");
  set_driver(pair.host, "550.54.15", "12.4");
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "minor-version-compatibility");
  set_driver(pair.host, "575.51.03", "12.9");
  EXPECT_EQ(pair.unjudged(), "");
  // The runtime beside it tells.
  pair.image.cuda_runtimes =
      from_test(std::vector<FoundLibrary>{{"/v/libcudart.so.12", "12.6.77"}});
  set_driver(pair.host, "550.54.15", "12.4");
  EXPECT_EQ(pair.found(), "minor-version-compatibility");
}

TEST(DriverTooOld, ByTheDriversOwnCudaVersion) {
  Pair pair = torch_on_h100();
  pair.host.nvidia.kernel_driver = unknown<std::string>("WSL: the kernel part is Windows' own");
  pair.host.nvidia.user_driver = from_test<std::string>("571.96");
  pair.host.nvidia.mismatch = unknown<bool>("WSL");
  pair.host.system.wsl = from_test(true);
  EXPECT_EQ(pair.found(), "wsl");
  pair.host.nvidia.cuda_version = from_test<std::string>("12.7");
  EXPECT_EQ(pair.found(), "minor-version-compatibility wsl");
  pair.host.nvidia.cuda_version = from_test<std::string>("11.8");
  EXPECT_EQ(pair.found(), "driver-too-old wsl");
  pair.host.nvidia.cuda_version = unknown<std::string>("no answer");
  EXPECT_EQ(pair.found(), "wsl");
  EXPECT_EQ(pair.unjudged(), "driver-too-old");
}

TEST(DriverTooOld, AReleaseThatTheTableLacks) {
  Pair pair = with_driver("620.70.06", "13.5");
  pair.image.frameworks = from_test(std::vector<FrameworkBuild>{{"torch", "3.0", "13.9"}});
  pair.image.cuda_runtimes = from_test(std::vector<FoundLibrary>{});
  EXPECT_EQ(pair.found(), "minor-version-compatibility");  // by what the driver calls itself
  pair.host.nvidia.cuda_version = unknown<std::string>("nothing says");
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "driver-too-old");
  set_driver(pair.host, "575.51.03", "12.9");
  EXPECT_EQ(pair.found(), "driver-too-old");
  // Never released, but its successor's driver runs it.
  pair.image.frameworks = from_test(std::vector<FrameworkBuild>{{"torch", "2.7", "12.7"}});
  EXPECT_EQ(pair.found(), "");
}

TEST(DriverTooOld, TheNewestFrameworkDecides) {
  Pair pair = with_driver("550.54.15", "12.4");
  pair.image.frameworks =
      from_test(std::vector<FrameworkBuild>{{"jax", "0.4", "12.4"}, {"torch", "2.12", "13.0"}});
  EXPECT_EQ(pair.finding("driver-too-old").needed,
            "driver 580 or newer for CUDA 13.0 (torch 2.12)");
}

TEST(MinorVersion, BelowTheToolkitsOwnDriver) {
  EXPECT_EQ(with_driver("570.25", "12.8").found(), "minor-version-compatibility");
  EXPECT_EQ(with_driver("570.26", "12.8").found(), "");
  EXPECT_EQ(with_driver("570.25", "12.8").finding("minor-version-compatibility").needed,
            "driver 570.26 for all of CUDA 12.8 (torch 2.9.1)");
}

TEST(PtxTooNew, OnlyWithAnOlderDriver) {
  Pair pair = with_driver("535.183.01", "12.2");
  pair.image.device_code =
      from_test(std::vector<DeviceLibrary>{{"/v/libtorch_cuda.so", {"sm_80", "compute_80"}, true}});
  EXPECT_EQ(pair.found(), "ptx-too-new minor-version-compatibility");
  set_driver(pair.host, "570.26", "12.8");
  EXPECT_EQ(pair.found(), "ptx-only");
  set_gpu(pair, "NVIDIA A100-SXM4-80GB", "8.0");
  EXPECT_EQ(pair.found(), "");
  set_driver(pair.host, "535.183.01", "12.2");
  EXPECT_EQ(pair.found(), "minor-version-compatibility");
  pair.image.device_code = unknown<std::vector<DeviceLibrary>>("known after the build");
  EXPECT_EQ(pair.unjudged(), "ptx-too-new no-device-code");
}

TEST(ForwardCompatibility, OnDataCentreGpusWithAListedDriver) {
  Pair pair = with_driver("470.199.02", "11.4");
  set_compat(pair, "12.8", {"470", "535", "550"});
  EXPECT_EQ(pair.found(), "forward-compatibility");
  set_compat(pair, "12.8", {"535", "550"});
  EXPECT_EQ(pair.found(), "forward-compatibility-refused");
  EXPECT_NE(pair.finding("forward-compatibility-refused").found.find("error 803"),
            std::string::npos);
  set_compat(pair, "12.8", {"470"});
  set_gpu(pair, "NVIDIA GeForce RTX 3090", "8.6");
  EXPECT_EQ(pair.found(), "forward-compatibility-refused");
  EXPECT_NE(pair.finding("forward-compatibility-refused").found.find("error 804"),
            std::string::npos);
}

TEST(ForwardCompatibility, ItsFolderComesFirstWhereItIsNeededAndWorks) {
  Pair pair = with_driver("470.199.02", "11.4");
  const auto folder = [&] { return forward_libraries(pair.image, pair.host); };
  EXPECT_EQ(folder(), "");
  set_compat(pair, "12.8", {"470"});
  EXPECT_EQ(folder(), "/usr/local/cuda/compat");
  Use without_gpus;
  without_gpus.gpus = 0;
  EXPECT_EQ(forward_libraries(pair.image, pair.host, without_gpus), "");
  pair.image.environment = {{"LD_LIBRARY_PATH", "/usr/local/cuda/compat"}};
  EXPECT_EQ(folder(), "") << "the image sees to it";
  pair.image.environment.clear();
  set_gpu(pair, "NVIDIA GeForce RTX 3090", "8.6");
  EXPECT_EQ(folder(), "") << "error 804";
  set_gpu(pair, "NVIDIA RTX A6000", "8.6");
  EXPECT_EQ(folder(), "") << "nobody knows";
  set_gpu(pair, "NVIDIA A100-SXM4-40GB", "8.0");
  set_compat(pair, "12.8", {"535"});
  EXPECT_EQ(folder(), "") << "error 803";
  set_compat(pair, "12.8", {"470"});
  set_driver(pair.host, "570.86.10", "12.8");
  EXPECT_EQ(folder(), "") << "the host's own will do";
}

TEST(ForwardCompatibility, OfAnotherMajorVersionItDoesNotHelp) {
  Pair pair = with_driver("470.199.02", "11.4");
  set_compat(pair, "11.8", {"470"});
  EXPECT_EQ(pair.found(), "driver-too-old");
}

TEST(ForwardCompatibility, WorkstationGpusAreNotKnown) {
  Pair pair = with_driver("470.199.02", "11.4");
  set_compat(pair, "12.8", {"470"});
  set_gpu(pair, "NVIDIA RTX A6000", "8.6");
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "driver-too-old");
}

TEST(ForwardCompatibility, NotKnownBeforeTheBuild) {
  Pair pair = with_driver("470.199.02", "11.4");
  pair.image.forward_compatibility = unknown<std::vector<ForwardCompatibility>>("not built");
  EXPECT_EQ(pair.found(), "");
  EXPECT_EQ(pair.unjudged(), "driver-too-old");
  set_gpu(pair, "NVIDIA GeForce RTX 3090", "8.6");
  EXPECT_EQ(pair.found(), "driver-too-old");
}

TEST(ForwardCompatibility, CompilesPtxToo) {
  Pair pair = with_driver("535.183.01", "12.2");
  set_compat(pair, "12.8", {"535"});
  EXPECT_EQ(pair.found(), "minor-version-compatibility");
  pair.image.device_code =
      from_test(std::vector<DeviceLibrary>{{"/v/libtorch_cuda.so", {"compute_80"}, true}});
  EXPECT_EQ(pair.found(), "ptx-only minor-version-compatibility forward-compatibility");
}

TEST(ForwardCompatibilityRefused, WhereItIsNotNeeded) {
  Pair pair = with_driver("535.183.01", "12.2");
  set_compat(pair, "12.8", {"535"});
  set_gpu(pair, "NVIDIA GeForce RTX 4090", "8.9");
  // NVIDIA's runtime tries it.
  EXPECT_EQ(pair.found(), "forward-compatibility-refused minor-version-compatibility");
  pair.image.environment = {{"LD_LIBRARY_PATH", "/usr/lib:/usr/local/cuda/compat/"}};
  EXPECT_EQ(pair.found(), "forward-compatibility-refused minor-version-compatibility");
  // The host's is newer: only a path puts the image's before it.
  set_driver(pair.host, "580.65.06", "13.0");
  EXPECT_EQ(pair.found(), "forward-compatibility-refused");
  pair.image.environment.clear();
  EXPECT_EQ(pair.found(), "");
}

TEST(ForwardCompatibilityRefused, WhereAPathLeadsToItByLinks) {
  Pair pair = with_driver("580.65.06", "13.0");
  set_compat(pair, "12.8", {"535"});
  set_gpu(pair, "NVIDIA GeForce RTX 4090", "8.9");
  pair.image.environment = {{"LD_LIBRARY_PATH", "/usr/local/cuda-12/compat"}};
  EXPECT_EQ(pair.found(), "");
  pair.image.forward_compatibility.value->front().in_library_path = true;
  EXPECT_EQ(pair.found(), "forward-compatibility-refused");
  pair.image.environment = {{"LD_LIBRARY_PATH", "/usr/local/cuda/compat"}};
  pair.image.forward_compatibility.value->front().in_library_path = false;
  EXPECT_EQ(pair.found(), "");
}

TEST(DriverBelowRecipe, Boundary) {
  Pair pair = torch_on_h100();
  pair.image.oldest_driver = from_test<std::string>("570.172.08");
  EXPECT_EQ(pair.found(), "");
  pair.image.oldest_driver = from_test<std::string>("570.172.09");
  EXPECT_EQ(pair.found(), "driver-below-recipe");
  pair.image.oldest_driver = from_test<std::string>("580");
  EXPECT_EQ(pair.found(), "driver-below-recipe");
  pair.host.system.wsl = from_test(true);
  EXPECT_EQ(pair.found(), "driver-below-recipe wsl");
  pair.host.system.wsl = from_test(false);
  pair.use.gpus = 0;
  EXPECT_EQ(pair.found(), "");
}

TEST(DriverState, Mismatch) {
  Pair pair = torch_on_h100();
  pair.host.nvidia.mismatch = from_test(true);
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(803);
  EXPECT_EQ(pair.found(), "driver-mismatch");
  pair.host.nvidia.cuda_status = unknown<std::uint64_t>("not recorded");
  EXPECT_EQ(pair.unjudged(), "");  // whatever it is, there is a reason for it
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(999);
  EXPECT_EQ(pair.found(), "driver-mismatch cuda-init-fails");
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(803);
  pair.host.nvidia.mismatch = unknown<bool>("?");
  EXPECT_EQ(pair.found(), "cuda-init-fails");
  EXPECT_EQ(pair.unjudged(), "driver-mismatch");
}

TEST(DriverState, NotLoaded) {
  Pair pair = torch_on_h100();
  pair.host.nvidia.kernel_driver = from_test<std::string>("none");
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(100);
  pair.host.gpus = from_test(std::vector<Gpu>{});
  EXPECT_EQ(pair.found(), "driver-not-loaded");
  pair.host.nvidia.pci_devices = from_test(Strings{});
  EXPECT_EQ(pair.found(), "no-gpu");
}

TEST(DriverState, DeviceNodes) {
  Pair pair = torch_on_h100();
  pair.host.nvidia.device_nodes = from_test(false);
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(100);
  EXPECT_EQ(pair.found(), "device-nodes-missing");
  EXPECT_EQ(pair.finding("device-nodes-missing").remedy, "`nvidia-modprobe -u -c 0` makes them");
  pair.host.system.container = from_test<std::string>("docker");
  EXPECT_EQ(pair.found(), "device-nodes-missing");
  EXPECT_NE(pair.finding("device-nodes-missing").remedy.find("daemon-reload"), std::string::npos);
  pair.host.nvidia.device_nodes = unknown<bool>("/dev is absent");
  EXPECT_EQ(pair.unjudged(), "device-nodes-missing");
}

TEST(DriverState, CudaInit) {
  Pair pair = torch_on_h100();
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(999);
  EXPECT_EQ(pair.finding("cuda-init-fails").found, "error 999, CUDA_ERROR_UNKNOWN");
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(12345);
  EXPECT_EQ(pair.finding("cuda-init-fails").found, "error 12345");
  // The probe's names and advice.
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(805);
  EXPECT_EQ(pair.finding("cuda-init-fails").found, "error 805, CUDA_ERROR_MPS_CONNECTION_FAILED");
  EXPECT_NE(pair.finding("cuda-init-fails").remedy.find("nvidia-cuda-mps-control"),
            std::string::npos);
  pair.host.nvidia.cuda_status = unknown<std::uint64_t>("not recorded");
  EXPECT_EQ(pair.unjudged(), "cuda-init-fails");
}

TEST(DriverState, FabricManager) {
  Pair pair = torch_on_h100();
  pair.host.nvidia.nvswitch = from_test(true);
  pair.host.nvidia.fabric_manager = from_test(true);
  EXPECT_EQ(pair.found(), "");
  pair.host.nvidia.fabric_manager = from_test(false);
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(802);
  EXPECT_EQ(pair.found(), "fabric-manager-missing");
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(999);  // which it does not lead to
  EXPECT_EQ(pair.found(), "fabric-manager-missing cuda-init-fails");
  pair.host.nvidia.cuda_status = from_test<std::uint64_t>(802);
  pair.host.nvidia.fabric_manager = unknown<bool>("other processes cannot be seen");
  EXPECT_EQ(pair.found(), "cuda-init-fails");
  EXPECT_EQ(pair.unjudged(), "fabric-manager-missing");
}

TEST(DriverState, Persistence) {
  Pair pair = torch_on_h100();
  pair.host.nvidia.persistence_daemon = from_test(false);
  EXPECT_EQ(pair.found(), "");
  pair.host.gpus = from_test(std::vector<Gpu>{test::gpu(0, "NVIDIA H100", "9.0")});
  std::vector<Gpu> gpus = *pair.host.gpus;
  gpus.front().persistence = from_test(false);
  pair.host.gpus = from_test(gpus);
  EXPECT_EQ(pair.found(), "persistence-off");
  pair.host.nvidia.persistence_daemon = from_test(true);
  EXPECT_EQ(pair.found(), "");
}

}  // namespace
}  // namespace mlenv
