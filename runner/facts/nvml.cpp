// NVML by its documented C interface (NVIDIA's "NVML API Reference Guide").
#include <fmt/core.h>

#include "runner/facts/nvidia.hpp"
#include "runner/facts/nvlinks.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

using nvidia::Calls;
using nvidia::Device;
using nvidia::MemoryInfo;
using nvidia::PciInfo;
using nvidia::Status;

Text pci_address(const Calls& nvml, Device device) {
  PciInfo info{};
  const auto wrong =
      nvml.failure<Status(Device, PciInfo*)>("nvmlDeviceGetPciInfo_v3", device, &info);
  return wrong ? unknown<std::string>(*wrong)
               : known<std::string>(info.bus_id.data(), "nvmlDeviceGetPciInfo_v3");
}

Text compute_capability(const Calls& nvml, Device device) {
  constexpr const char* kName = "nvmlDeviceGetCudaComputeCapability";
  int major = 0;
  int minor = 0;
  const auto wrong = nvml.failure<Status(Device, int*, int*)>(kName, device, &major, &minor);
  return wrong ? unknown<std::string>(*wrong) : known(fmt::format("{}.{}", major, minor), kName);
}

Number memory_of(const Calls& nvml, Device device) {
  constexpr const char* kName = "nvmlDeviceGetMemoryInfo";
  MemoryInfo memory{};
  const auto wrong = nvml.failure<Status(Device, MemoryInfo*)>(kName, device, &memory);
  return wrong ? unknown<std::uint64_t>(*wrong) : known<std::uint64_t>(memory.total, kName);
}

/// Indices have gaps where instances were removed.
std::vector<MigDevice> mig_devices_of(const Calls& nvml, Device device, std::uint64_t gpu) {
  std::vector<MigDevice> found;
  const Number most = nvml.number("nvmlDeviceGetMaxMigDeviceCount", device);
  for (unsigned i = 0; i < most.value.value_or(0); ++i) {
    Device part = nullptr;
    const auto absent = nvml.failure<Status(Device, unsigned, Device*)>(
        "nvmlDeviceGetMigDeviceHandleByIndex", device, i, &part);
    if (absent) continue;
    found.push_back({gpu, i, nvml.text("nvmlDeviceGetUUID", part),
                     nvml.text("nvmlDeviceGetName", part),
                     nvml.number("nvmlDeviceGetGpuInstanceId", part),
                     nvml.number("nvmlDeviceGetComputeInstanceId", part), memory_of(nvml, part)});
  }
  return found;
}

struct AskedDevice {
  Gpu gpu;
  Device device = nullptr;
  Fact<nvidia::Links> links;
};

AskedDevice ask_device(const Calls& nvml, Device device, std::uint64_t index) {
  AskedDevice asked{{}, device, nvidia::links_of(nvml, device)};
  Gpu& gpu = asked.gpu;
  gpu.index = index;
  gpu.name = nvml.text("nvmlDeviceGetName", device);
  gpu.uuid = nvml.text("nvmlDeviceGetUUID", device);
  gpu.pci_address = pci_address(nvml, device);
  gpu.compute_capability = compute_capability(nvml, device);
  gpu.memory_bytes = memory_of(nvml, device);
  gpu.mig = nvml.mode("nvmlDeviceGetMigMode", device);
  gpu.ecc = nvml.mode("nvmlDeviceGetEccMode", device);
  gpu.persistence = derived<bool>(nvml.number("nvmlDeviceGetPersistenceMode", device),
                                  [](std::uint64_t mode) { return std::optional(mode != 0); });
  gpu.pcie_generation = nvml.number("nvmlDeviceGetMaxPcieLinkGeneration", device);
  gpu.pcie_lanes = nvml.number("nvmlDeviceGetMaxPcieLinkWidth", device);
  gpu.nvlinks = nvidia::count_of(asked.links);
  return asked;
}

/// nvmlGpuTopologyLevel_t in the words of nvidia-smi.
std::optional<std::string> level_name(unsigned level) {
  switch (level) {
    case 0:
    case 10:
      return "PIX";
    case 20:
      return "PXB";
    case 30:
      return "PHB";
    case 40:
      return "NODE";
    case 50:
      return "SYS";
    default:
      return std::nullopt;
  }
}

Text path_between(const Calls& nvml, const AskedDevice& a, const AskedDevice& b) {
  const Number links =
      nvidia::links_between({a.gpu.pci_address, a.links}, {b.gpu.pci_address, b.links});
  if (!links) return unknown<std::string>(links.source);
  if (*links > 0) return known(fmt::format("NV{}", *links), links.source);
  constexpr const char* kName = "nvmlDeviceGetTopologyCommonAncestor";
  unsigned level = 0;
  const auto wrong =
      nvml.failure<Status(Device, Device, unsigned*)>(kName, a.device, b.device, &level);
  if (wrong) return unknown<std::string>(*wrong);
  const auto name = level_name(level);
  return name ? known(*name, kName) : unknown<std::string>(fmt::format("{}: {}", kName, level));
}

void ask_devices(const Calls& nvml, GpuAnswers& answers) {
  using Gpus = std::vector<Gpu>;
  using Paths = std::vector<GpuPath>;
  using Parts = std::vector<MigDevice>;
  unsigned count = 0;
  std::vector<AskedDevice> asked;
  auto wrong = nvml.failure<Status(unsigned*)>("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count && !wrong; ++i) {
    Device device = nullptr;
    wrong = nvml.failure<Status(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2", i, &device);
    // One that fell off the bus hides none of the others.
    if (wrong) {
      AskedDevice lost;
      lost.gpu.index = i;
      Gpu::fields(lost.gpu, [&](const char*, auto& field) {
        if constexpr (requires { field.source; }) field.source = *wrong;
      });
      lost.links.source = *wrong;
      asked.push_back(std::move(lost));
      wrong.reset();
      continue;
    }
    asked.push_back(ask_device(nvml, device, i));
  }
  if (wrong) {
    answers.gpus = unknown<Gpus>(*wrong);
    answers.paths = unknown<Paths>(*wrong);
    answers.mig_devices = unknown<Parts>(*wrong);
    return;
  }
  Gpus gpus;
  Paths paths;
  Parts parts;
  for (std::size_t a = 0; a < asked.size(); ++a) {
    gpus.push_back(asked[a].gpu);
    if (asked[a].gpu.mig.value == true) {
      const Parts own = mig_devices_of(nvml, asked[a].device, a);
      parts.insert(parts.end(), own.begin(), own.end());
    }
    for (std::size_t b = a + 1; b < asked.size(); ++b) {
      const bool both = asked[a].device != nullptr && asked[b].device != nullptr;
      paths.push_back({a, b,
                       both ? path_between(nvml, asked[a], asked[b])
                            : unknown<std::string>("one of them does not answer")});
    }
  }
  answers.gpus = known(std::move(gpus), "NVML");
  answers.paths = known(std::move(paths), "NVML");
  answers.mig_devices = known(std::move(parts), "NVML");
}

}  // namespace

GpuAnswers ask_nvml() {
  const Library library("libnvidia-ml.so.1");
  if (!library) return no_answers(library.why());
  const Calls nvml(library);
  const auto wrong = nvml.failure<Status()>("nvmlInit_v2");
  GpuAnswers answers = no_answers(wrong.value_or("not asked of NVML"));
  // libnvidia-ml.so.550.54.14: the library's own version, which it does not tell after a failure.
  constexpr std::string_view kStem = "libnvidia-ml.so.";
  const std::string name = library.file().filename().string();
  if (name.starts_with(kStem) && driver_version(name.substr(kStem.size()))) {
    answers.user_driver = known(name.substr(kStem.size()), library.file().string());
  }
  if (wrong) return answers;
  if (!answers.user_driver) answers.user_driver = nvml.system_text("nvmlSystemGetDriverVersion");
  int cuda = 0;
  const auto silent = nvml.failure<Status(int*)>("nvmlSystemGetCudaDriverVersion_v2", &cuda);
  answers.cuda_version = silent ? unknown<std::string>(*silent)
                                : known(cuda_version(cuda), "nvmlSystemGetCudaDriverVersion_v2");
  ask_devices(nvml, answers);
  (void)nvml.failure<Status()>("nvmlShutdown");
  return answers;
}

}  // namespace mlenv
