#pragma once
// What the GPUs of this machine do right now, as NVIDIA's NVML has it. The library is asked in a
// process of its own, which lives as long as it answers: a sick driver hangs whoever asks it, so
// one that is late is killed, and asked anew after a while.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"

namespace mlenv::watch {

/// A process that uses a GPU.
struct GpuProcess {
  std::uint64_t id = 0;
  std::optional<std::uint64_t> memory_bytes;
  /// Percent of the time that its kernels ran, since the last question; nothing: NVML has none.
  std::optional<std::uint64_t> busy_percent;
  friend bool operator==(const GpuProcess&, const GpuProcess&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("memory_bytes", self.memory_bytes);
    visit("busy_percent", self.busy_percent);
  }
};

/// Nothing: this GPU or driver does not tell.
struct GpuNow {
  std::uint64_t index = 0;
  std::optional<std::string> uuid;
  std::optional<std::string> name;
  /// Percent of the time that any kernel ran, however small: "utilization.gpu" of nvidia-smi.
  std::optional<std::uint64_t> busy_percent;
  /// Percent of the time that its memory was read or written.
  std::optional<std::uint64_t> memory_busy_percent;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;
  std::optional<std::uint64_t> temperature_celsius;
  std::optional<std::uint64_t> pcie_received_bytes_per_second;
  std::optional<std::uint64_t> pcie_sent_bytes_per_second;
  /// `heat`, `power-brake`, `power-cap`, `hardware`: what keeps its clocks down.
  std::vector<std::string> slowed_by;
  std::vector<GpuProcess> processes;
  friend bool operator==(const GpuNow&, const GpuNow&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("index", self.index);
    visit("uuid", self.uuid);
    visit("name", self.name);
    visit("busy_percent", self.busy_percent);
    visit("memory_busy_percent", self.memory_busy_percent);
    visit("memory_used_bytes", self.memory_used_bytes);
    visit("memory_bytes", self.memory_bytes);
    visit("power_watts", self.power_watts);
    visit("power_limit_watts", self.power_limit_watts);
    visit("temperature_celsius", self.temperature_celsius);
    visit("pcie_received_bytes_per_second", self.pcie_received_bytes_per_second);
    visit("pcie_sent_bytes_per_second", self.pcie_sent_bytes_per_second);
    visit("slowed_by", self.slowed_by);
    visit("processes", self.processes);
  }
};

struct GpuAnswer {
  std::optional<std::vector<GpuNow>> gpus;
  std::optional<std::string> why;  ///< there are none
  friend bool operator==(const GpuAnswer&, const GpuAnswer&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("gpus", self.gpus);
    visit("why", self.why);
  }
};

class GpuReader {
 public:
  GpuReader();
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;
  ~GpuReader();
  /// Waits no longer than the deadline; the first answer of a driver takes seconds.
  GpuAnswer ask(std::chrono::milliseconds deadline = std::chrono::seconds(5));

 private:
  void start();
  GpuAnswer give_up(std::string why);

  std::unique_ptr<Child> helper_;
  Fd questions_;
  Fd answers_;
  std::optional<std::chrono::steady_clock::time_point> not_before_;
  std::string last_why_;
};

/// Its process: main() calls this first and returns its value when it is engaged
/// (`mlenv __gpus`). nullopt: this is an ordinary start.
std::optional<int> gpus_main(int argc, char** argv);

/// The GPUs of a run by its devices' CDI names: `nvidia.com/gpu=0`, `=all`, `=GPU-…`. In both, what
/// is not NVIDIA's is left out.
bool has_gpus(const std::vector<std::string>& devices);
std::vector<GpuNow> gpus_of(const std::vector<std::string>& devices, std::vector<GpuNow> all);

}  // namespace mlenv::watch
