// NVML by its documented C interface (NVIDIA's "NVML API Reference Guide"): functions are looked up
// by name, so that a library that lacks one still answers the rest.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "runner/facts/library.hpp"
#include "runner/facts/nvidia.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

using Status = int;                  // nvmlReturn_t
using Device = void*;                // nvmlDevice_t
constexpr unsigned kMostLinks = 36;  // more than any NVML_NVLINK_MAX_LINKS so far

// nvmlPciInfo_t, of nvmlDeviceGetPciInfo_v3.
struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  std::array<char, 32> bus_id;
};
// nvmlMemory_t
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

using GetText = Status(Device, char*, unsigned);
using GetSystemText = Status(char*, unsigned);
using GetNumber = Status(Device, unsigned*);
using GetPair = Status(Device, int*, int*);
using GetModes = Status(Device, unsigned*, unsigned*);
using GetPci = Status(Device, PciInfo*);
using GetLink = Status(Device, unsigned, unsigned*);
using GetLinkPci = Status(Device, unsigned, PciInfo*);

class Nvml {
 public:
  explicit Nvml(const Library& library) : library_(library) {}

  /// Calls `name`; its failure in words, or nothing.
  template <class Function, class... Args>
  std::optional<std::string> failure(const char* name, Args... args) const {
    auto* function = library_.function<Function>(name);
    if (function == nullptr) return fmt::format("this NVML has no {}", name);
    status_ = function(args...);
    if (status_ == 0) return std::nullopt;
    auto* words = library_.function<const char*(Status)>("nvmlErrorString");
    return fmt::format("{}: {}", name, words != nullptr ? words(status_) : "failed");
  }
  Status status() const { return status_; }

  Text text(const char* name, Device device) const {
    std::array<char, 96> buffer{};
    const auto wrong = failure<GetText>(name, device, buffer.data(), unsigned{buffer.size()});
    if (wrong) return unknown<std::string>(*wrong);
    return known<std::string>(buffer.data(), name);
  }
  Text system_text(const char* name) const {
    std::array<char, 96> buffer{};
    const auto wrong = failure<GetSystemText>(name, buffer.data(), unsigned{buffer.size()});
    if (wrong) return unknown<std::string>(*wrong);
    return known<std::string>(buffer.data(), name);
  }
  Number number(const char* name, Device device) const {
    unsigned value = 0;
    const auto wrong = failure<GetNumber>(name, device, &value);
    return wrong ? unknown<std::uint64_t>(*wrong) : known<std::uint64_t>(value, name);
  }
  /// The current one of a current and a pending mode.
  Truth mode(const char* name, Device device) const {
    unsigned current = 0;
    unsigned pending = 0;
    const auto wrong = failure<GetModes>(name, device, &current, &pending);
    return wrong ? unknown<bool>(*wrong) : known(current != 0, name);
  }

 private:
  const Library& library_;
  mutable Status status_ = 0;
};

Text pci_address(const Nvml& nvml, Device device) {
  PciInfo info{};
  const auto wrong = nvml.failure<GetPci>("nvmlDeviceGetPciInfo_v3", device, &info);
  return wrong ? unknown<std::string>(*wrong)
               : known<std::string>(info.bus_id.data(), "nvmlDeviceGetPciInfo_v3");
}

Text compute_capability(const Nvml& nvml, Device device) {
  constexpr const char* kName = "nvmlDeviceGetCudaComputeCapability";
  int major = 0;
  int minor = 0;
  const auto wrong = nvml.failure<GetPair>(kName, device, &major, &minor);
  return wrong ? unknown<std::string>(*wrong) : known(fmt::format("{}.{}", major, minor), kName);
}

/// Links that are up, by the bus address at their other end (of a GPU, or of an NVSwitch).
Fact<std::map<std::string, unsigned>> links_of(const Nvml& nvml, Device device) {
  using Ends = std::map<std::string, unsigned>;
  Ends ends;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned is_up = 0;
    const auto wrong = nvml.failure<GetLink>("nvmlDeviceGetNvLinkState", device, link, &is_up);
    constexpr Status kInvalid = 2;
    constexpr Status kNotSupported = 3;
    if (wrong && (nvml.status() == kInvalid || nvml.status() == kNotSupported)) break;
    if (wrong) return unknown<Ends>(*wrong);
    if (is_up == 0) continue;
    PciInfo other{};
    const auto nameless =
        nvml.failure<GetLinkPci>("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, &other);
    ++ends[nameless ? "" : other.bus_id.data()];
  }
  return known(std::move(ends), "nvmlDeviceGetNvLinkState");
}

struct Asked {
  Gpu gpu;
  Device device = nullptr;
  Fact<std::map<std::string, unsigned>> links;
};

Asked ask_device(const Nvml& nvml, Device device, std::uint64_t index) {
  Asked asked{{}, device, links_of(nvml, device)};
  Gpu& gpu = asked.gpu;
  gpu.index = index;
  gpu.name = nvml.text("nvmlDeviceGetName", device);
  gpu.uuid = nvml.text("nvmlDeviceGetUUID", device);
  gpu.pci_address = pci_address(nvml, device);
  gpu.compute_capability = compute_capability(nvml, device);
  Memory memory{};
  const auto wrong =
      nvml.failure<Status(Device, Memory*)>("nvmlDeviceGetMemoryInfo", device, &memory);
  gpu.memory_bytes = wrong ? unknown<std::uint64_t>(*wrong)
                           : known<std::uint64_t>(memory.total, "nvmlDeviceGetMemoryInfo");
  gpu.mig = nvml.mode("nvmlDeviceGetMigMode", device);
  gpu.ecc = nvml.mode("nvmlDeviceGetEccMode", device);
  gpu.persistence = derived<bool>(nvml.number("nvmlDeviceGetPersistenceMode", device),
                                  [](std::uint64_t mode) { return std::optional(mode != 0); });
  gpu.pcie_generation = nvml.number("nvmlDeviceGetMaxPcieLinkGeneration", device);
  gpu.pcie_lanes = nvml.number("nvmlDeviceGetMaxPcieLinkWidth", device);
  gpu.nvlinks = derived<std::uint64_t>(asked.links, [](const auto& ends) {
    std::uint64_t count = 0;
    for (const auto& [end, links] : ends) count += links;
    return std::optional(count);
  });
  return asked;
}

/// NVLinks from one to the other, or by way of switches that both have: then as many as the one
/// with fewer has.
unsigned links_between(const Asked& a, const Asked& b) {
  if (!a.links || !b.links || !b.gpu.pci_address) return 0;
  const auto direct = a.links->find(*b.gpu.pci_address);
  if (direct != a.links->end()) return direct->second;
  unsigned common = 0;
  for (const auto& [end, links] : *a.links) {
    const auto other = b.links->find(end);
    if (!end.empty() && other != b.links->end()) common += std::min(links, other->second);
  }
  return common;
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

Text path_between(const Nvml& nvml, const Asked& a, const Asked& b) {
  if (const unsigned links = links_between(a, b); links > 0) {
    return known(fmt::format("NV{}", links), "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  }
  constexpr const char* kName = "nvmlDeviceGetTopologyCommonAncestor";
  unsigned level = 0;
  const auto wrong =
      nvml.failure<Status(Device, Device, unsigned*)>(kName, a.device, b.device, &level);
  if (wrong) return unknown<std::string>(*wrong);
  const auto name = level_name(level);
  return name ? known(*name, kName) : unknown<std::string>(fmt::format("{}: {}", kName, level));
}

void ask_devices(const Nvml& nvml, GpuAnswers& answers) {
  using Gpus = std::vector<Gpu>;
  using Paths = std::vector<GpuPath>;
  unsigned count = 0;
  std::vector<Asked> asked;
  auto wrong = nvml.failure<Status(unsigned*)>("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count && !wrong; ++i) {
    Device device = nullptr;
    wrong = nvml.failure<Status(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2", i, &device);
    // One that fell off the bus hides none of the others.
    if (wrong) {
      Asked lost;
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
    return;
  }
  Gpus gpus;
  Paths paths;
  for (std::size_t a = 0; a < asked.size(); ++a) {
    gpus.push_back(asked[a].gpu);
    for (std::size_t b = a + 1; b < asked.size(); ++b) {
      const bool both = asked[a].device != nullptr && asked[b].device != nullptr;
      paths.push_back({a, b,
                       both ? path_between(nvml, asked[a], asked[b])
                            : unknown<std::string>("one of them does not answer")});
    }
  }
  answers.gpus = known(std::move(gpus), "NVML");
  answers.paths = known(std::move(paths), "NVML");
}

GpuAnswers no_answers(const std::string& why) {
  return {unknown<std::string>(why),      unknown<std::string>(why),
          unknown<std::uint64_t>(why),    unknown<bool>(why),
          unknown<std::vector<Gpu>>(why), unknown<std::vector<GpuPath>>(why)};
}

/// `13000`: CUDA's CUDA_VERSION, 1000 * major + 10 * minor.
std::string cuda_version(int version) {
  constexpr int kMajor = 1000;
  constexpr int kMinor = 10;
  return fmt::format("{}.{}", version / kMajor, version % kMajor / kMinor);
}

}  // namespace

GpuAnswers ask_nvml() {
  const Library library("libnvidia-ml.so.1");
  if (!library) return no_answers(library.why());
  const Nvml nvml(library);
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

// The CUDA driver API by its documented C interface.
GpuAnswers ask_cuda() {
  const Library library("libcuda.so.1");
  if (!library) return no_answers(library.why());
  const Nvml calls(library);  // the same convention: 0 is success
  GpuAnswers answers = no_answers("not asked of CUDA");
  int version = 0;
  if (!calls.failure<Status(int*)>("cuDriverGetVersion", &version)) {
    answers.cuda_version = known(cuda_version(version), "cuDriverGetVersion");
  }
  auto* init = library.function<Status(unsigned)>("cuInit");
  if (init == nullptr) return answers;
  const Status status = init(0);
  answers.cuda_status = known(static_cast<std::uint64_t>(status), "cuInit");
  answers.dma_buf = unknown<bool>(fmt::format("cuInit: error {}", status));
  int count = 0;
  if (status != 0 || calls.failure<Status(int*)>("cuDeviceGetCount", &count)) return answers;
  constexpr int kDmaBuf = 124;  // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
  bool all = true;
  for (int device = 0; device < count; ++device) {
    int value = 0;
    if (const auto wrong = calls.failure<Status(int*, int, int)>("cuDeviceGetAttribute", &value,
                                                                 kDmaBuf, device)) {
      answers.dma_buf = unknown<bool>(*wrong);
      return answers;
    }
    all = all && value != 0;
  }
  answers.dma_buf = known(all, "cuDeviceGetAttribute");
  return answers;
}

}  // namespace mlenv
