// Words of `--gpus`, and a specification made from a recorded tree of a host with NVIDIA's driver:
// regular files stand for its devices and libraries, which nothing here opens.
#include "runner/cdi/gpus.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFFU);
  return text;
}

/// A linker's cache as ldconfig(8) writes it (glibc's dl-cache.h).
std::string linker_cache(const std::vector<std::pair<std::string, std::string>>& libraries,
                         std::uint64_t flags) {
  constexpr std::size_t kHead = 48;
  constexpr std::size_t kEntry = 24;
  std::string strings;
  std::string entries;
  const std::size_t base = kHead + kEntry * libraries.size();
  const auto add = [&](const std::string& text) {
    const std::size_t at = base + strings.size();
    strings += text + '\0';
    return number(at, 4);
  };
  for (const auto& [name, path] : libraries) {
    entries += number(flags, 4) + add(name) + add(path) + number(0, 4) + number(0, 8);
  }
  return "glibc-ld.so.cache1.1" + number(libraries.size(), 4) + number(strings.size(), 4) +
         std::string(20, '\0') + entries + strings;
}

class NvidiaSpecTest : public testing::Test {
 protected:
  NvidiaSpecTest() : folder_(temporary_root()) {}
  fs::path root() const { return folder_.path(); }
  void file(const std::string& path, const std::string& text = "") {
    make_folders((root() / path).parent_path());
    write_file(root() / path, text, false);
  }
  void gpu(const std::string& address, int minor, const std::string& uuid) {
    file("proc/driver/nvidia/gpus/" + address + "/information",
         "Model: \t\t NVIDIA H100\nIRQ:   \t\t 42\nGPU UUID: \t " + uuid + "\nDevice Minor: \t " +
             std::to_string(minor) + "\n");
    file("dev/nvidia" + std::to_string(minor));
  }
  void driver() {
    for (const char* node : {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}) {
      file(std::string("dev/") + node);
    }
    const std::string libraries = "usr/lib/x86_64-linux-gnu/";
    for (const char* name : {"libcuda", "libnvidia-ml", "libnvidia-nvvm"}) {
      file(libraries + name + ".so.580.65.06");
    }
    file(libraries + "libz.so.1");
    const auto link = [&](const char* name, const char* target) {
      fs::create_symlink(target, root() / libraries / name);
    };
    link("libcuda.so.1", "libcuda.so.580.65.06");
    link("libnvidia-ml.so.1", "libnvidia-ml.so.580.65.06");
    link("libnvidia-nvvm.so.4", "libnvidia-nvvm.so.580.65.06");
    const std::string folder = "/" + libraries;
    file("etc/ld.so.cache", linker_cache({{"libcuda.so.1", folder + "libcuda.so.1"},
                                          {"libnvidia-ml.so.1", folder + "libnvidia-ml.so.1"},
                                          {"libnvidia-nvvm.so.4", folder + "libnvidia-nvvm.so.4"},
                                          {"libz.so.1", folder + "libz.so.1"}},
                                         0x303));
    file("usr/bin/nvidia-smi");
  }
  CdiSpec spec() const {
    std::optional<CdiSpec> made = nvidia_spec(root());
    EXPECT_TRUE(made);
    return made.value_or(CdiSpec{});
  }
  TemporaryFolder folder_;
};

Strings paths(const std::vector<CdiNode>& nodes) {
  Strings found;
  for (const CdiNode& one : nodes) found.push_back(one.path);
  return found;
}

TEST_F(NvidiaSpecTest, DevicesAndTheDriversLibraries) {
  driver();
  gpu("0000:5a:00.0", 0, "GPU-b");  // minors need not follow addresses, which are what counts
  gpu("0000:3b:00.0", 1, "GPU-a");
  const CdiSpec made = spec();
  Strings names;
  for (const CdiDevice& one : made.devices) names.push_back(one.name);
  EXPECT_EQ(names, (Strings{"0", "GPU-a", "1", "GPU-b", "all"}));
  EXPECT_EQ(paths(made.edits.nodes),
            (Strings{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}));
  EXPECT_EQ(paths(made.find("0")->edits.nodes), (Strings{"/dev/nvidia1"}));
  EXPECT_EQ(paths(made.find("GPU-b")->edits.nodes), (Strings{"/dev/nvidia0"}));
  EXPECT_EQ(paths(made.find("all")->edits.nodes), (Strings{"/dev/nvidia1", "/dev/nvidia0"}));
  Strings mounts;
  for (const CdiMount& one : made.edits.mounts) mounts.push_back(one.host_path + " " + one.path);
  const std::string from = "/usr/lib/x86_64-linux-gnu/";
  const std::string to = " /usr/local/nvidia/lib64/";
  EXPECT_EQ(mounts, (Strings{from + "libcuda.so.580.65.06" + to + "libcuda.so.1",
                             from + "libcuda.so.580.65.06" + to + "libcuda.so",
                             from + "libnvidia-ml.so.580.65.06" + to + "libnvidia-ml.so.1",
                             from + "libnvidia-nvvm.so.580.65.06" + to + "libnvidia-nvvm.so.4",
                             "/usr/bin/nvidia-smi /usr/bin/nvidia-smi"}));
  EXPECT_EQ(made.edits.library_folders, (Strings{"/usr/local/nvidia/lib64"}));
}

TEST_F(NvidiaSpecTest, ASplitGpuBringsItsInstances) {
  driver();
  gpu("0000:3b:00.0", 2, "GPU-a");
  const std::string folder = "proc/driver/nvidia/capabilities/gpu2/mig/";
  file(folder + "gi1/access", "DeviceFileMinor: 12\nDeviceFileMode: 292\n");
  file(folder + "gi1/ci0/access", "DeviceFileMinor: 13\nDeviceFileMode: 292\n");
  file("dev/nvidia-caps/nvidia-cap12");
  file("dev/nvidia-caps/nvidia-cap13");
  EXPECT_EQ(
      paths(spec().find("0")->edits.nodes),
      (Strings{"/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"}));
}

TEST_F(NvidiaSpecTest, PartsOfASplitGpuAreDevicesOfTheirOwn) {
  driver();
  gpu("0000:3b:00.0", 1, "GPU-a");
  gpu("0000:5a:00.0", 0, "GPU-b");
  const std::string folder = "proc/driver/nvidia/capabilities/gpu0/mig/";
  int minor = 12;
  for (const char* const one : {"gi1", "gi1/ci0", "gi5", "gi5/ci0"}) {
    file(folder + one + "/access", fmt::format("DeviceFileMinor: {}\n", minor));
    file(fmt::format("dev/nvidia-caps/nvidia-cap{}", minor++));
  }
  const auto part = [](std::uint64_t index, const char* uuid, std::uint64_t instance) {
    const auto number = [](std::uint64_t value) { return known<std::uint64_t>(value, "NVML"); };
    return MigDevice{1,         index, known<std::string>(uuid, "NVML"), {}, number(instance),
                     number(0), {}};
  };
  int asked = 0;
  const auto seen = [](std::uint64_t index, const char* uuid, const char* address) {
    Gpu one;
    one.index = index;
    one.uuid = known<std::string>(uuid, "NVML");
    one.pci_address = known<std::string>(address, "NVML");
    return one;
  };
  SplitGpus told;
  told.gpus = known(
      std::vector<Gpu>{seen(0, "GPU-a", "0000:3b:00.0"), seen(1, "GPU-b", "0000:5a:00.0")}, "NVML");
  told.parts = known(std::vector<MigDevice>{part(0, "MIG-a", 1), part(1, "MIG-b", 5)}, "NVML");
  const auto names = [&] {
    const auto made = nvidia_spec(root(), [&] {
      ++asked;
      return told;
    });
    Strings found;
    for (const CdiDevice& one : made->devices) found.push_back(one.name);
    if (const auto* second = made->find("1:1")) {
      EXPECT_EQ(paths(second->edits.nodes),
                (Strings{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap14",
                         "/dev/nvidia-caps/nvidia-cap15"}));
    }
    EXPECT_EQ(paths(made->find("all")->edits.nodes).size(), 6U);
    return found;
  };
  EXPECT_EQ(names(), (Strings{"0", "GPU-a", "1:0", "MIG-a", "1:1", "MIG-b", "all"}));
  EXPECT_EQ(asked, 1);
  // The first one is lost to NVML, whose second is ours no more.
  told.gpus = known(std::vector<Gpu>{seen(1, "GPU-c", "0000:9c:00.0")}, "NVML");
  EXPECT_EQ(names(), (Strings{"0", "GPU-a", "1", "GPU-b", "all"})) << "another GPU's parts";
  told.gpus = known(std::vector<Gpu>{seen(1, "GPU-b", "")}, "NVML");
  EXPECT_EQ(names(), (Strings{"0", "GPU-a", "1:0", "MIG-a", "1:1", "MIG-b", "all"}));
  told.gpus.value->front().index = 0;
  for (MigDevice& one : *told.parts.value) one.gpu = 0;
  EXPECT_EQ(names(), (Strings{"0", "GPU-a", "1:0", "MIG-a", "1:1", "MIG-b", "all"})) << "by UUID";
  told.parts = unknown<std::vector<MigDevice>>("NVML does not answer");
  EXPECT_EQ(names(), (Strings{"0", "GPU-a", "1", "GPU-b", "all"})) << "with all of its parts";
}

TEST_F(NvidiaSpecTest, WhatRendersIsOfItsGpuAlone) {
  driver();
  gpu("0000:3b:00.0", 0, "GPU-a");
  gpu("0000:5a:00.0", 1, "GPU-b");
  file("sys/bus/pci/devices/0000:5a:00.0/drm/renderD129/uevent");
  file("dev/dri/renderD129");
  file("dev/dri/renderD128");
  const CdiSpec made = spec();
  EXPECT_EQ(paths(made.find("0")->edits.nodes), (Strings{"/dev/nvidia0"}));
  EXPECT_EQ(paths(made.find("1")->edits.nodes), (Strings{"/dev/nvidia1", "/dev/dri/renderD129"}));
}

TEST_F(NvidiaSpecTest, FirmwareLoadersFilesAndDaemons) {
  driver();
  gpu("0000:3b:00.0", 0, "GPU-a");
  file("proc/sys/kernel/osrelease", "6.1.0-9-amd64\n");
  file("lib/firmware/6.1.0-9-amd64/nvidia/580.65.06/gsp_ga10x.bin");
  file("lib/firmware/nvidia/580.65.06/gsp_tu10x.bin");
  file("lib/firmware/nvidia/570.10/gsp_tu10x.bin");
  file("usr/share/vulkan/icd.d/nvidia_icd.json");
  file("run/nvidia-persistenced/socket");
  const CdiSpec made = spec();
  const auto mounted = [&](const std::string& path) {
    return std::find_if(made.edits.mounts.begin(), made.edits.mounts.end(),
                        [&](const CdiMount& one) { return one.path == path; });
  };
  const auto none = made.edits.mounts.end();
  EXPECT_NE(mounted("/lib/firmware/6.1.0-9-amd64/nvidia/580.65.06/gsp_ga10x.bin"), none);
  EXPECT_NE(mounted("/lib/firmware/nvidia/580.65.06/gsp_tu10x.bin"), none);
  EXPECT_EQ(mounted("/lib/firmware/nvidia/570.10/gsp_tu10x.bin"), none);
  const auto icd = mounted("/etc/vulkan/icd.d/nvidia_icd.json");
  ASSERT_NE(icd, none) << "where a container's loader looks, wherever the host has it";
  EXPECT_EQ(icd->host_path, "/usr/share/vulkan/icd.d/nvidia_icd.json");
  EXPECT_EQ(icd->options.front(), "ro");
  const auto socket = mounted("/run/nvidia-persistenced/socket");
  ASSERT_NE(socket, none);
  EXPECT_EQ(socket->options, (Strings{"nosuid", "nodev", "noexec", "rbind", "rprivate"}));
}

TEST_F(NvidiaSpecTest, ADriverInAFolderOfItsOwn) {
  driver();
  gpu("0000:3b:00.0", 0, "GPU-a");
  const std::string own = "/usr/local/nvidia/";
  file(own.substr(1) + "lib64/libcuda.so.580.65.06");
  fs::create_symlink("libcuda.so.580.65.06", root() / own.substr(1) / "lib64/libcuda.so.1");
  file("etc/ld.so.cache", linker_cache({{"libcuda.so.1", own + "lib64/libcuda.so.1"}}, 0x303));
  file("usr/bin/nvidia-smi", "#!/bin/sh\nexec /usr/local/nvidia/bin/nvidia-smi \"$@\"\n");
  file("usr/bin/nvidia-debugdump", "#!/bin/sh\n");
  file(own.substr(1) + "bin/nvidia-smi");
  file(own.substr(1) + "bin/nvidia-imex");
  file(own.substr(1) + "share/vulkan/icd.d/nvidia_icd.json");
  const CdiSpec made = spec();
  const auto source_of = [&](const std::string& path) -> std::string {
    for (const CdiMount& one : made.edits.mounts) {
      if (one.path == path) return one.host_path;
    }
    return {};
  };
  EXPECT_EQ(source_of("/usr/bin/nvidia-smi"), own + "bin/nvidia-smi") << "what the script starts";
  EXPECT_EQ(source_of("/usr/bin/nvidia-imex"), own + "bin/nvidia-imex");
  EXPECT_EQ(source_of("/usr/bin/nvidia-debugdump"), "/usr/bin/nvidia-debugdump") << "all there is";
  EXPECT_EQ(source_of("/usr/local/nvidia/lib64/libcuda.so.1"), own + "lib64/libcuda.so.580.65.06");
  EXPECT_EQ(source_of("/etc/vulkan/icd.d/nvidia_icd.json"),
            own + "share/vulkan/icd.d/nvidia_icd.json");
}

TEST_F(NvidiaSpecTest, WithoutADriverThereIsNone) {
  EXPECT_FALSE(nvidia_spec(root()));
  file("dev/nvidiactl");
  EXPECT_EQ(code_of([&] { (void)nvidia_spec(root()); }), "no-device");
}

TEST_F(NvidiaSpecTest, WindowsBringsItsOwn) {
  file("dev/dxg");
  file("usr/lib/wsl/lib/libcuda.so.1");
  const CdiSpec made = spec();
  EXPECT_EQ(paths(made.edits.nodes), (Strings{"/dev/dxg"}));
  EXPECT_EQ(made.edits.mounts.at(0).path, "/usr/lib/wsl");
  EXPECT_EQ(made.edits.library_folders, (Strings{"/usr/lib/wsl/lib"}));
  EXPECT_NE(made.find("all"), nullptr);
}

TEST(Gpus, Strings) {
  EXPECT_EQ(parse_gpus("").kind, GpuChoice::Kind::automatic);
  EXPECT_EQ(parse_gpus("all").kind, GpuChoice::Kind::all);
  EXPECT_EQ(parse_gpus("none").kind, GpuChoice::Kind::none);
  EXPECT_EQ(parse_gpus("0").kind, GpuChoice::Kind::none);
  EXPECT_EQ(parse_gpus("2").kind, GpuChoice::Kind::count);
  EXPECT_EQ(parse_gpus("2").count, 2U);
  const auto named = [](const char* word) {
    const GpuChoice choice = parse_gpus(word);
    EXPECT_EQ(choice.kind, GpuChoice::Kind::named);
    Strings names;
    for (const CdiName& one : choice.devices) names.push_back(one.kind + "=" + one.device);
    return names;
  };
  EXPECT_EQ(named("device=0,2"), (Strings{"nvidia.com/gpu=0", "nvidia.com/gpu=2"}));
  EXPECT_EQ(named("device=1:0"), (Strings{"nvidia.com/gpu=1:0"}));
  EXPECT_EQ(named("GPU-1a,MIG-2b"), (Strings{"nvidia.com/gpu=GPU-1a", "nvidia.com/gpu=MIG-2b"}));
  EXPECT_EQ(named("amd.com/gpu=0"), (Strings{"amd.com/gpu=0"}));
}

TEST(Gpus, WrongWords) {
  const auto complaint = [](const char* word) {
    return std::string(error_of([&] { (void)parse_gpus(word); }).what());
  };
  EXPECT_EQ(complaint("0,2"),
            "`--gpus 0,2`: a number alone is how many, and indices are `device=0,2`");
  EXPECT_EQ(complaint("al"), "`--gpus al`: `al` names no GPU");
  EXPECT_EQ(complaint("GPU-1,"), "`--gpus GPU-1,`: `` names no GPU");
  EXPECT_EQ(complaint("99999999999999999999999"),
            "`--gpus 99999999999999999999999`: that is no number of GPUs");
}

class ChosenGpusTest : public testing::Test {
 protected:
  static Strings chosen(const char* word, const Strings& names) {
    CdiRegistry registry{{}};
    CdiSpec spec;
    spec.kind = kNvidiaGpu;
    for (const std::string& name : names) spec.devices.push_back({name, {}});
    registry.add(spec);
    Strings found;
    for (const CdiName& one : chosen_gpus(parse_gpus(word), registry)) found.push_back(one.device);
    return found;
  }
};

TEST_F(ChosenGpusTest, EachGpuOnce) {
  const Strings whole = {"0", "1", "10", "GPU-a", "GPU-b", "GPU-c", "all"};
  EXPECT_EQ(chosen("all", whole), (Strings{"all"}));
  EXPECT_EQ(chosen("2", whole), (Strings{"0", "1"}));
  EXPECT_EQ(chosen("none", whole), Strings{});
  EXPECT_EQ(chosen("3", {"0", "1:0", "1:1", "all"}), (Strings{"0", "1:0", "1:1"}));
  EXPECT_EQ(chosen("all", {"GPU-a", "GPU-b"}), (Strings{"GPU-a", "GPU-b"}));
}

TEST_F(ChosenGpusTest, FewerThanThat) {
  EXPECT_EQ(error_of([] {
              (void)chosen("4", {"0", "all"});
            })
                .frames()
                .front(),
            "4 GPUs wanted, and this host has 1");
  EXPECT_EQ(code_of([] { (void)chosen("all", {}); }), "no-device");
}

}  // namespace
}  // namespace mlenv
