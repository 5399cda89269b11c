// What else the machine did, and how its processors are set.
#include <poll.h>
#include <charconv>

#include "base/error.hpp"
#include "runner/compare/measure.hpp"
#include "runner/compare/output.hpp"

namespace mlenv::compare {
namespace {

constexpr const char* kStat = "/proc/stat";

std::optional<std::string> kernel_line(const fs::path& path) {
  try {
    const std::optional<std::string> text = read_file_if_exists(path);
    if (!text) return std::nullopt;
    return text->substr(0, text->find('\n'));
  } catch (const Error&) {
    return std::nullopt;  // the kernel's file is there, and says nothing
  }
}

/// intel_pstate says when there is none; others say when there is.
std::optional<std::string> turbo() {
  if (const auto none = kernel_line("/sys/devices/system/cpu/intel_pstate/no_turbo")) {
    return *none == "0" ? "on" : "off";
  }
  if (const auto boost = kernel_line("/sys/devices/system/cpu/cpufreq/boost")) {
    return *boost == "1" ? "on" : "off";
  }
  return std::nullopt;
}

std::optional<double> share_of_time(const std::optional<CpuTimes>& before,
                                    const std::optional<CpuTimes>& after, double CpuTimes::*of) {
  if (!before || !after || after->all <= before->all) return std::nullopt;
  return ((*after).*of - (*before).*of) / (after->all - before->all);
}

}  // namespace

Noise noise_before() {
  Noise noise;
  if (const auto load = kernel_line("/proc/loadavg")) {
    double value = 0;
    const auto [end, error] = std::from_chars(load->data(), load->data() + load->size(), value);
    if (error == std::errc{}) noise.load_before = value;
  }
  const std::optional<CpuTimes> before = read_cpu_times(read_file(kStat));
  constexpr int kMoment = 500;  // ms
  (void)::poll(nullptr, 0, kMoment);
  noise.busy_before = share_of_time(before, read_cpu_times(read_file(kStat)), &CpuTimes::busy);
  noise.governor = kernel_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  noise.turbo = turbo();
  return noise;
}

std::optional<double> steal_since(const std::string& before) {
  return share_of_time(read_cpu_times(before), read_cpu_times(read_file(kStat)), &CpuTimes::steal);
}

}  // namespace mlenv::compare
