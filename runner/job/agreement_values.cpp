#include "runner/job/agreement_values.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "base/paths.hpp"
#include "recipes/text.hpp"

namespace mlenv::job {
namespace {

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  constexpr double kStep = 1024;
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= kStep && unit + 1 < kUnits.size(); ++unit) value /= kStep;
  return fmt::format("{:.3g} {}", value, kUnits.at(unit));
}

}  // namespace

Text runtime_of(const NodeReport& node) {
  if (node.hello.runtime.empty()) return known(std::string("none"), "the node");
  return known(std::string(last_part(node.hello.runtime)), "the node");
}

Text text_of(const Number& number) {
  return derived<std::string>(
      number, [](std::uint64_t value) { return std::optional(std::to_string(value)); });
}

Text bytes_of(const Number& bytes) {
  return derived<std::string>(bytes,
                              [](std::uint64_t value) { return std::optional(bytes_text(value)); });
}

Text models_of(const Facts& facts) {
  if (!facts.gpus) return unknown<std::string>(facts.gpus.source);
  std::map<std::string, std::size_t> kinds;
  for (const Gpu& gpu : *facts.gpus) {
    if (!gpu.name) return unknown<std::string>(gpu.name.source);
    ++kinds[*gpu.name];
  }
  std::vector<std::string> names;
  for (const auto& [name, count] : kinds) names.push_back(name);
  return known(names.empty() ? std::string("none") : join(names, ", "), facts.gpus.source);
}

Text gpu_count_of(const Facts& facts) {
  if (!facts.gpus) return unknown<std::string>(facts.gpus.source);
  return known(std::to_string(facts.gpus->size()), facts.gpus.source);
}

Text gpu_memory_of(const Facts& facts) {
  if (!facts.gpus) return unknown<std::string>(facts.gpus.source);
  Number least = unknown<std::uint64_t>("no GPU");
  for (const Gpu& gpu : *facts.gpus) {
    if (!gpu.memory_bytes) return unknown<std::string>(gpu.memory_bytes.source);
    if (!least || *gpu.memory_bytes < *least) least = gpu.memory_bytes;
  }
  return bytes_of(least);
}

Text mig_of(const Facts& facts) {
  if (!facts.gpus) return unknown<std::string>(facts.gpus.source);
  std::size_t on = 0;
  for (const Gpu& gpu : *facts.gpus) {
    if (!gpu.mig) return unknown<std::string>(gpu.mig.source);
    on += *gpu.mig ? 1 : 0;
  }
  return known(std::string(on == 0                    ? "off"
                           : on == facts.gpus->size() ? "on"
                                                      : "on some"),
               facts.gpus.source);
}

Text mismatch_of(const Facts& facts) {
  const NvidiaFacts& nvidia = facts.nvidia;
  return derived<std::string>(nvidia.mismatch, [&](bool mismatch) {
    if (!mismatch) return std::optional<std::string>("of one version");
    return std::optional(fmt::format("kernel {}, libraries {}",
                                     nvidia.kernel_driver.value.value_or("unknown"),
                                     nvidia.user_driver.value.value_or("unknown")));
  });
}

Text gpu_direct_of(const Facts& facts) {
  const NvidiaFacts& nvidia = facts.nvidia;
  const bool either = nvidia.peermem.value.value_or(false) || nvidia.dma_buf.value.value_or(false);
  if (either) return known(std::string("yes"), "peermem, dma_buf");
  if (nvidia.peermem && nvidia.dma_buf) return known(std::string("no"), "peermem, dma_buf");
  return unknown<std::string>(nvidia.peermem ? nvidia.dma_buf.source : nvidia.peermem.source);
}

bool has_active_port(const Facts& facts) {
  return facts.network.rdma &&
         std::any_of(facts.network.rdma->begin(), facts.network.rdma->end(),
                     [](const RdmaPort& port) { return port.state.value == "ACTIVE"; });
}

Text ports_of(const Facts& facts) {
  if (!facts.network.rdma) return unknown<std::string>(facts.network.rdma.source);
  std::size_t active = 0;
  double fastest = 0;
  for (const RdmaPort& port : *facts.network.rdma) {
    if (port.state.value != "ACTIVE") continue;
    ++active;
    fastest = std::max(fastest, port.rate_gbps.value.value_or(0));
  }
  return known(active == 0 ? std::string("none active")
                           : fmt::format("{} active, {} Gbit/s", active, fastest),
               facts.network.rdma.source);
}

Text speed_of(const NodeReport& node) {
  const auto& interfaces = node.facts.network.interfaces;
  if (!interfaces) return unknown<std::string>(interfaces.source);
  std::optional<std::uint64_t> fastest;
  for (const NetworkInterface& one : *interfaces) {
    const bool counts = one.kind.value == "physical" && one.state.value == "up";
    if (counts && one.speed_mbps) fastest = std::max(fastest.value_or(0), *one.speed_mbps);
  }
  if (!fastest) return unknown<std::string>("no interface tells its speed");
  return known(fmt::format("{} Mbit/s", *fastest), interfaces.source);
}

}  // namespace mlenv::job
