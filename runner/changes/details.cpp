// Differences of the hosts that no rule looks at: names, addresses, free bytes.
#include <algorithm>
#include <array>
#include <map>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/record_json.hpp"
#include "runner/changes/rules.hpp"

namespace mlenv::changes {
namespace {

using nlohmann::json;
using FactValues = std::map<std::string, std::string>;

// Facts that rules look at: by their path, or how it begins.
constexpr std::array kLooked = std::to_array<std::string_view>({"system.kernel",
                                                                "system.architecture",
                                                                "system.wsl",
                                                                "system.container",
                                                                "system.user_id",
                                                                "system.distribution",
                                                                "system.distribution_version",
                                                                "cpu.model",
                                                                "cpu.usable",
                                                                "cpu.flags",
                                                                "cpu.level",
                                                                "cpu.limit_millicpus",
                                                                "memory.total_bytes",
                                                                "memory.swap_bytes",
                                                                "memory.limit_bytes",
                                                                "storage.shared_memory.size_bytes",
                                                                "storage.store.type",
                                                                "storage.temporary.type",
                                                                "limits.open_files_soft",
                                                                "limits.memlock_soft_bytes",
                                                                "isolation.sandbox",
                                                                "isolation.apparmor_profile",
                                                                "isolation.selinux",
                                                                "isolation.seccomp",
                                                                "network.host_is_loopback",
                                                                "network.rdma",
                                                                "time.synchronised",
                                                                "time.clock_source"});
// The same where GPUs are of use.
constexpr std::array kLookedOnGpus = std::to_array<std::string_view>(
    {"nvidia.kernel_driver", "nvidia.user_driver", "nvidia.mismatch", "nvidia.open_module",
     "nvidia.cuda_status", "nvidia.device_nodes", "gpu_paths"});
constexpr std::array kOfEachGpu = std::to_array<std::string_view>(
    {".name", ".compute_capability", ".memory_bytes", ".mig", ".ecc", ".persistence",
     ".pcie_generation", ".pcie_lanes", ".nvlinks"});

bool is_at(std::string_view path, std::string_view fact) {
  return path == fact || (path.starts_with(fact) && path[fact.size()] == '.');
}

bool is_looked_at(std::string_view path, bool on_gpus) {
  const auto fits = [&](std::string_view fact) { return is_at(path, fact); };
  if (std::any_of(kLooked.begin(), kLooked.end(), fits)) return true;
  if (!on_gpus) return false;
  if (std::any_of(kLookedOnGpus.begin(), kLookedOnGpus.end(), fits)) return true;
  return path.starts_with("gpus.") &&
         std::any_of(kOfEachGpu.begin(), kOfEachGpu.end(),
                     [&](std::string_view end) { return path.ends_with(end); });
}

/// What an item of a list is told by.
std::string item_key(const json& item, std::size_t place) {
  for (const char* name : {"name", "path", "device", "index", "id"}) {
    const auto found = item.find(name);
    if (found != item.end() && found->is_string()) return found->get<std::string>();
    if (found != item.end() && found->is_number()) return canonical(*found);
  }
  return std::to_string(place);
}

/// `gpus.0.uuid` → its value. Unknown facts have none.
void flatten(const json& value, const std::string& path, FactValues& out) {
  const bool is_fact = value.is_object() && value.contains("source") && value.contains("value");
  if (is_fact) return flatten(value.at("value"), path, out);
  const auto below = [&](const std::string& name) {
    return path.empty() ? name : path + '.' + name;
  };
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      const bool is_key = member.is_string() && path.ends_with('.' + member.get<std::string>());
      if (!is_key) flatten(member, below(name), out);
    }
  } else if (value.is_array() && !value.empty() && value.front().is_object()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      flatten(value[i], below(item_key(value[i], i)), out);
    }
  } else if (!value.is_null()) {
    out[path] = value.is_string() ? value.get<std::string>() : canonical(value);
  }
}

FactValues fact_values(const Facts& facts) {
  FactValues out;
  flatten(RecordWriter::written(facts), "", out);
  return out;
}

/// Of what is not there in the one, and may be unknown, nothing is said but for items of lists.
bool is_item(const std::string& path) {
  return path.starts_with("network.interfaces.") || path.starts_with("containers.") ||
         path.starts_with("gpus.") || path.starts_with("memory.numa.");
}

}  // namespace

void details(Compared& here) {
  if (here.from_host() == nullptr) return;
  const FactValues from = fact_values(*here.from_host());
  const FactValues to = fact_values(*here.to_host());
  ValueChanges changes;
  compare_values(changes, "", from, to);
  for (const ValueChange& one : changes) {
    if (is_looked_at(one.name, here.on_gpus())) continue;
    if ((!one.from || !one.to) && !is_item(one.name)) continue;
    here.find("host-detail", {one.from, one.to, {}, "host " + one.name});
  }
}

}  // namespace mlenv::changes
