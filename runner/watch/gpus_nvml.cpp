// By NVML's documented C interface (NVIDIA's "NVML API Reference Guide").
#include "runner/watch/gpus_nvml.hpp"

#include <algorithm>

#include "runner/facts/nvidia_calls.hpp"

namespace mlenv::watch {
namespace {

using nvidia::Calls;
using nvidia::Device;
using nvidia::MemoryInfo;
using nvidia::Status;

// nvmlUtilization_t
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
// nvmlProcessInfo_t, of the calls that end in _v2 and _v3
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
// nvmlProcessUtilizationSample_t
struct ProcessUse {
  unsigned pid;
  unsigned long long time;
  unsigned sm;
  unsigned memory;
  unsigned encoder;
  unsigned decoder;
};

constexpr unsigned kPcieSent = 0;      // NVML_PCIE_UTIL_TX_BYTES: by the GPU
constexpr unsigned kPcieReceived = 1;  // NVML_PCIE_UTIL_RX_BYTES
constexpr unsigned kOnDie = 0;         // NVML_TEMPERATURE_GPU
constexpr double kMilliwatts = 1000;

std::optional<std::uint64_t> with_word(const Calls& nvml, const char* name, Device device,
                                       unsigned word) {
  unsigned value = 0;
  if (nvml.failure<Status(Device, unsigned, unsigned*)>(name, device, word, &value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> milliwatts(const Calls& nvml, const char* name, Device device) {
  const Number found = nvml.number(name, device);
  return found ? std::optional(static_cast<double>(*found) / kMilliwatts) : std::nullopt;
}

/// nvmlClocksEventReasons; those that tell nothing (idle, a person's own settings) are left out.
std::vector<std::string> reasons(const Calls& nvml, Device device) {
  struct Reason {
    unsigned long long bit;
    const char* name;
  };
  constexpr std::array kReasons = {Reason{0x4, "power-cap"}, Reason{0x8, "hardware"},
                                   Reason{0x20, "heat"}, Reason{0x40, "heat"},
                                   Reason{0x80, "power-brake"}};
  unsigned long long bits = 0;
  using GetBits = Status(Device, unsigned long long*);
  std::vector<std::string> found;
  // The newer name came with driver 535.
  if (nvml.failure<GetBits>("nvmlDeviceGetCurrentClocksEventReasons", device, &bits) &&
      nvml.failure<GetBits>("nvmlDeviceGetCurrentClocksThrottleReasons", device, &bits)) {
    return found;
  }
  for (const Reason& one : kReasons) {
    const bool is_new = found.empty() || found.back() != one.name;
    if ((bits & one.bit) != 0 && is_new) found.emplace_back(one.name);
  }
  return found;
}

std::vector<GpuProcess> processes(const Calls& nvml, Device device) {
  constexpr std::size_t kMost = 256;
  constexpr auto kUnknown = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE
  std::vector<ProcessInfo> buffer(kMost);
  auto count = static_cast<unsigned>(buffer.size());
  using Get = Status(Device, unsigned*, ProcessInfo*);
  std::vector<GpuProcess> found;
  if (nvml.failure<Get>("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, buffer.data())) {
    return found;
  }
  for (const ProcessInfo& one : buffer) {
    if (found.size() == std::min<std::size_t>(count, kMost)) break;
    GpuProcess process;
    process.id = one.pid;
    if (one.used_memory != kUnknown) process.memory_bytes = one.used_memory;
    found.push_back(process);
  }
  return found;
}

/// The newest figure of each process that came since `seen`.
void add_use(const Calls& nvml, Device device, unsigned long long& seen,
             std::vector<GpuProcess>& into) {
  constexpr std::size_t kMost = 1024;
  std::vector<ProcessUse> buffer(kMost);
  auto count = static_cast<unsigned>(buffer.size());
  using Get = Status(Device, ProcessUse*, unsigned*, unsigned long long);
  if (nvml.failure<Get>("nvmlDeviceGetProcessUtilization", device, buffer.data(), &count, seen)) {
    return;
  }
  buffer.resize(std::min<std::size_t>(count, kMost));
  std::sort(buffer.begin(), buffer.end(),
            [](const ProcessUse& a, const ProcessUse& b) { return a.time < b.time; });
  for (const ProcessUse& one : buffer) {
    for (GpuProcess& process : into) {
      if (process.id == one.pid) process.busy_percent = one.sm;
    }
    seen = std::max(seen, one.time);
  }
}

void ask_use(const Calls& nvml, Device device, GpuNow& gpu) {
  Utilization use{};
  if (!nvml.failure<Status(Device, Utilization*)>("nvmlDeviceGetUtilizationRates", device, &use)) {
    gpu.busy_percent = use.gpu;
    gpu.memory_busy_percent = use.memory;
  }
  MemoryInfo memory{};
  if (!nvml.failure<Status(Device, MemoryInfo*)>("nvmlDeviceGetMemoryInfo", device, &memory)) {
    gpu.memory_used_bytes = memory.used;
    gpu.memory_bytes = memory.total;
  }
}

}  // namespace

Nvml::Nvml() : library_("libnvidia-ml.so.1") {
  if (!library_) {
    wrong_ = library_.why();
    return;
  }
  wrong_ = Calls(library_).failure<Status()>("nvmlInit_v2");
}

GpuNow Nvml::ask_device(std::uint64_t index) {
  constexpr std::uint64_t kKilo = 1000;  // of KB/s; whether 1000 or 1024 is not documented
  const Calls nvml(library_);
  GpuNow gpu;
  gpu.index = index;
  Device device = nullptr;
  if (nvml.failure<Status(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2",
                                              static_cast<unsigned>(index), &device)) {
    return gpu;  // it fell off the bus
  }
  gpu.uuid = nvml.text("nvmlDeviceGetUUID", device).value;
  gpu.name = nvml.text("nvmlDeviceGetName", device).value;
  ask_use(nvml, device, gpu);
  gpu.power_watts = milliwatts(nvml, "nvmlDeviceGetPowerUsage", device);
  gpu.power_limit_watts = milliwatts(nvml, "nvmlDeviceGetEnforcedPowerLimit", device);
  gpu.temperature_celsius = with_word(nvml, "nvmlDeviceGetTemperature", device, kOnDie);
  const auto rate = [&](unsigned direction) {
    auto found = with_word(nvml, "nvmlDeviceGetPcieThroughput", device, direction);
    if (found) *found *= kKilo;
    return found;
  };
  gpu.pcie_received_bytes_per_second = rate(kPcieReceived);
  gpu.pcie_sent_bytes_per_second = rate(kPcieSent);
  gpu.slowed_by = reasons(nvml, device);
  gpu.processes = processes(nvml, device);
  add_use(nvml, device, seen_[index], gpu.processes);
  return gpu;
}

GpuAnswer Nvml::ask() {
  if (wrong_) return {std::nullopt, wrong_};
  unsigned count = 0;
  const auto wrong = Calls(library_).failure<Status(unsigned*)>("nvmlDeviceGetCount_v2", &count);
  if (wrong) return {std::nullopt, wrong};
  GpuAnswer answer;
  answer.gpus.emplace();
  for (std::uint64_t index = 0; index < count; ++index) answer.gpus->push_back(ask_device(index));
  return answer;
}

}  // namespace mlenv::watch
