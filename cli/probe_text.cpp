#include "cli/probe_text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"

namespace mlenv::cli {
namespace {

using nlohmann::json;

/// `25.3 GB/s`; `-` where it was not measured.
std::string rate(const json& bytes_per_second) {
  if (!bytes_per_second.is_number()) return "-";
  constexpr double kGiga = 1e9;
  return fmt::format("{:.1f} GB/s", bytes_per_second.get<double>() / kGiga);
}

std::string text(const json& value, const std::string& otherwise = "unknown") {
  return value.is_string() ? printable(value.get<std::string>()) : otherwise;
}

void add_problem(std::vector<std::string>& lines, const json& part) {
  if (part.at("problem").is_string()) lines.push_back("         " + text(part.at("problem")));
}

void add_gpu(std::vector<std::string>& lines, const json& gpu) {
  const json& right = gpu.at("kernel_right");
  constexpr double kGibi = 1073741824.0;
  const json& memory = gpu.at("memory_bytes");
  lines.push_back(fmt::format("GPU {:<4} {}, compute capability {}, {}", gpu.at("index").get<int>(),
                              text(gpu.at("name")), text(gpu.at("compute_capability")),
                              memory.is_number()
                                  ? fmt::format("{:.1f} GiB", memory.get<double>() / kGibi)
                                  : "unknown memory"));
  lines.push_back(
      fmt::format("         kernel {}, host to device {}, device to host {}, within {}",
                  right.is_boolean() ? (right.get<bool>() ? "right" : "wrong") : "not run",
                  rate(gpu.at("host_to_device_bytes_per_second")),
                  rate(gpu.at("device_to_host_bytes_per_second")),
                  rate(gpu.at("device_to_device_bytes_per_second"))));
  add_problem(lines, gpu);
}

void add_pair(std::vector<std::string>& lines, const json& pair) {
  const json& direct = pair.at("peer_access");
  lines.push_back(fmt::format("{} to {}   {}, {}", pair.at("from").get<int>(),
                              pair.at("to").get<int>(), rate(pair.at("bytes_per_second")),
                              direct.is_boolean()
                                  ? (direct.get<bool>() ? "direct" : "by way of the host")
                                  : "unknown way"));
  add_problem(lines, pair);
}

void add_nccl_line(std::vector<std::string>& lines, const json& nccl) {
  const json& right = nccl.at("sums_right");
  lines.push_back(fmt::format(
      "NCCL     {}, {} ranks: sums {}, {} on the bus ({} of data)", text(nccl.at("version")),
      nccl.at("ranks").get<int>(),
      right.is_boolean() ? (right.get<bool>() ? "right" : "wrong") : "not made",
      rate(nccl.at("bus_bytes_per_second")), rate(nccl.at("algorithm_bytes_per_second"))));
  add_problem(lines, nccl);
}

}  // namespace

std::vector<std::string> probe_text(const json& answer) {
  std::vector<std::string> lines;
  const json& driver = answer.at("driver");
  if (driver.at("library").is_string()) {
    lines.push_back(fmt::format("driver   CUDA {}, {}", text(driver.at("cuda_version")),
                                text(driver.at("library"))));
  }
  for (const json& gpu : answer.at("gpus")) add_gpu(lines, gpu);
  for (const json& pair : answer.at("pairs")) add_pair(lines, pair);
  if (answer.at("nccl").is_object()) add_nccl_line(lines, answer.at("nccl"));
  if (answer.at("verdict") == "works") {
    lines.emplace_back("all of it works");
  } else {
    lines.push_back("no: " + text(answer.at("reason")));
    if (answer.at("advice").is_string()) lines.push_back("hint: " + text(answer.at("advice")));
  }
  return lines;
}

}  // namespace mlenv::cli
