// Driver and GPUs of the two hosts, where GPUs are of use.
#include <algorithm>

#include <fmt/core.h>

#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "runner/changes/rules.hpp"

namespace mlenv::changes {
namespace {

bool has_hosts_with_gpus(const Compared& here) {
  return here.from_host() != nullptr && here.on_gpus();
}

std::string on(bool value) { return value ? "on" : "off"; }

/// `2 × NVIDIA H100 80GB HBM3`, of what each GPU says; `unknown` where one does not.
template <class Read>
Fact<std::vector<std::string>> of_each(const Facts& host, Read&& read) {
  if (!host.gpus) return unknown<std::vector<std::string>>(host.gpus.source);
  std::vector<std::string> out;
  for (const Gpu& gpu : *host.gpus) {
    const auto& fact = read(gpu);
    if (!fact) return unknown<std::vector<std::string>>(fact.source);
    out.push_back(fmt::format("{}", *fact));
  }
  std::sort(out.begin(), out.end());
  return known(std::move(out), host.gpus.source);
}

/// `2 × A, 1 × B`
std::string counted_kinds(const std::vector<std::string>& sorted) {
  std::vector<std::string> kinds;
  for (auto one = sorted.begin(); one != sorted.end();) {
    const auto end = std::upper_bound(one, sorted.end(), *one);
    kinds.push_back(fmt::format("{} × {}", end - one, *one));
    one = end;
  }
  return kinds.empty() ? "none" : join(kinds, ", ");
}

std::vector<std::string> kinds_of(std::vector<std::string> sorted) {
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

double capability_number(const std::string& capability) {
  const std::size_t dot = capability.find('.');
  const auto part = [](std::string_view text) {
    return all_digits(text) && text.size() < 4 ? std::stod(std::string(text)) : 0.0;
  };
  if (dot == std::string::npos) return part(capability);
  return part(capability.substr(0, dot)) * 100 + part(capability.substr(dot + 1));
}

void compare_models(Compared& here) {
  const auto name = [](const Gpu& gpu) -> const Text& { return gpu.name; };
  const auto capability = [](const Gpu& gpu) -> const Text& { return gpu.compute_capability; };
  const auto from = of_each(*here.from_host(), name);
  const auto to = of_each(*here.to_host(), name);
  if (!here.know("host gpus", from, to) || from->empty() || to->empty()) return;
  if (kinds_of(*from) == kinds_of(*to)) return;
  const auto before = of_each(*here.from_host(), capability);
  const auto after = of_each(*here.to_host(), capability);
  Said said{counted_kinds(*from), counted_kinds(*to)};
  if (before && after && capability_number(after->front()) < capability_number(before->front())) {
    said.weight = Weight::breaks;
    said.effect = fmt::format(
        "compute capability {} is older than {}: the image may hold no code for it, and bfloat16 "
        "or "
        "FP8 may be missing",
        after->front(), before->front());
  }
  here.find("gpu-model", std::move(said));
}

/// The runs name their devices one by one, so how many the hosts have does not matter.
bool are_counted_by_runs(const Compared& here) {
  if (here.from_run() == nullptr) return false;
  const auto all = [](const RunRecord* run) {
    const auto& devices = run->start.devices;
    return std::any_of(devices.begin(), devices.end(),
                       [](const std::string& one) { return one.ends_with("=all"); });
  };
  return !all(here.from_run()) && !all(here.to_run());
}

void compare_count(Compared& here) {
  const auto& from = here.from_host()->gpus;
  const auto& to = here.to_host()->gpus;
  if (!here.know("host gpus", from, to) || from->size() == to->size()) return;
  Said said{counted(from->size(), "GPU"), counted(to->size(), "GPU"),
            to->size() < from->size() ? Weight::breaks : Weight::results, "GPUs of the host"};
  if (are_counted_by_runs(here)) said.weight = Weight::incidental;
  here.find("gpu-count", std::move(said));
}

void compare_memory(Compared& here) {
  const auto memory = [](const Gpu& gpu) -> const Number& { return gpu.memory_bytes; };
  const auto least = [&](const Facts& host) -> Fact<std::uint64_t> {
    if (!host.gpus) return unknown<std::uint64_t>(host.gpus.source);
    Fact<std::uint64_t> out = unknown<std::uint64_t>("no GPU");
    for (const Gpu& gpu : *host.gpus) {
      if (!memory(gpu)) return memory(gpu);
      if (!out || *memory(gpu) < *out) out = memory(gpu);
    }
    return out;
  };
  const Number from = least(*here.from_host());
  const Number to = least(*here.to_host());
  if (!from || !to) return;          // told with the GPUs themselves
  constexpr double kNoticed = 0.02;  // ECC and firmware take what they take
  const double change = static_cast<double>(*to) / static_cast<double>(*from) - 1;
  if (*from == 0 || (change < kNoticed && change > -kNoticed)) return;
  here.find("gpu-memory",
            {bytes_text(*from), bytes_text(*to), change < 0 ? Weight::breaks : Weight::note});
}

/// A switch that each GPU has; found where any of them differs.
template <class Read>
void compare_switch(Compared& here, std::string_view rule, std::string_view what, Read&& read,
                    std::optional<Weight> when_on = {}) {
  const auto word = [&](const Gpu& gpu) {
    const Truth& truth = read(gpu);
    return truth ? known(on(*truth), truth.source) : unknown<std::string>(truth.source);
  };
  const auto from = of_each(*here.from_host(), word);
  const auto to = of_each(*here.to_host(), word);
  if (!here.know(what, from, to) || kinds_of(*from) == kinds_of(*to)) return;
  if (from->empty() || to->empty()) return;
  const bool is_on = to->back() == "on";
  here.find(rule, {counted_kinds(*from), counted_kinds(*to),
                   is_on ? when_on : std::optional(Weight::speed)});
}

std::string link_text(const Gpu& gpu) {
  const auto number = [](const Number& fact) {
    return fact ? std::to_string(*fact) : std::string("?");
  };
  return fmt::format("PCIe {} × {}, {} NVLinks", number(gpu.pcie_generation),
                     number(gpu.pcie_lanes), number(gpu.nvlinks));
}

void compare_links(Compared& here) {
  const auto links = [](const Gpu& gpu) -> Text {
    const bool told = gpu.pcie_generation && gpu.pcie_lanes && gpu.nvlinks;
    return told ? known(link_text(gpu), "NVML")
                : unknown<std::string>("links of a GPU are unknown");
  };
  const auto from = of_each(*here.from_host(), links);
  const auto to = of_each(*here.to_host(), links);
  if (here.know("host gpus: links", from, to) && kinds_of(*from) != kinds_of(*to) &&
      !from->empty() && !to->empty()) {
    return here.find("gpu-links", {counted_kinds(*from), counted_kinds(*to)});
  }
  const auto paths = [](const Facts& host) -> Fact<std::vector<std::string>> {
    if (!host.gpu_paths) return unknown<std::vector<std::string>>(host.gpu_paths.source);
    std::vector<std::string> out;
    for (const GpuPath& one : *host.gpu_paths) {
      if (!one.path) return unknown<std::vector<std::string>>(one.path.source);
      out.push_back(*one.path);
    }
    std::sort(out.begin(), out.end());
    return known(std::move(out), host.gpu_paths.source);
  };
  const auto before = paths(*here.from_host());
  const auto after = paths(*here.to_host());
  if (!before || !after || before->size() != after->size() || *before == *after) return;
  here.find("gpu-links", {counted_kinds(*before), counted_kinds(*after), {}, "paths between GPUs"});
}

/// Found where it was there and is not, or the other way.
void compare_service(Compared& here, std::string_view rule, std::string_view what,
                     const Truth& from, const Truth& to) {
  if (!here.know(what, from, to) || *from == *to) return;
  here.find(rule,
            {value_text(*from), value_text(*to), *to ? std::optional(Weight::note) : std::nullopt});
}

}  // namespace

void driver(Compared& here) {
  if (!has_hosts_with_gpus(here)) return;
  const NvidiaFacts& from = here.from_host()->nvidia;
  const NvidiaFacts& to = here.to_host()->nvidia;
  if (from.mismatch && to.mismatch && *from.mismatch != *to.mismatch) {
    const auto both = [](const NvidiaFacts& one) {
      return fmt::format("kernel {}, libraries {}", one.kernel_driver.value.value_or("unknown"),
                         one.user_driver.value.value_or("unknown"));
    };
    here.find("driver-mismatch", {both(from), both(to)});
  } else if (here.know("host nvidia.kernel_driver", from.kernel_driver, to.kernel_driver) &&
             *from.kernel_driver != *to.kernel_driver) {
    Said said{*from.kernel_driver, *to.kernel_driver};
    if (*to.kernel_driver == "none") {
      said.weight = Weight::breaks;
      said.effect = "no driver is loaded: no CUDA program starts";
      said.remedy = "`mlenv check` says what is in its way";
    } else if (*from.kernel_driver != "none" && is_older(*to.kernel_driver, *from.kernel_driver)) {
      said.weight = Weight::breaks;
      said.effect = "an older driver may lack what the image's CUDA needs: start or PTX code fails";
      said.remedy = "`mlenv check` says which driver the image needs";
    }
    here.find("driver", std::move(said));
  } else if (from.user_driver && to.user_driver && *from.user_driver != *to.user_driver) {
    here.find("driver", {*from.user_driver, *to.user_driver, {}, "libraries of the NVIDIA driver"});
  }
  const bool told = from.cuda_status && to.cuda_status;
  if (told && (*from.cuda_status == 0) != (*to.cuda_status == 0)) {
    here.find("cuda-init", {std::to_string(*from.cuda_status), std::to_string(*to.cuda_status)});
  }
  if (from.open_module && to.open_module && *from.open_module != *to.open_module) {
    const auto kind = [](bool open) { return open ? "open" : "closed"; };
    here.find("driver-module", {kind(*from.open_module), kind(*to.open_module)});
  }
}

void gpus(Compared& here) {
  if (!has_hosts_with_gpus(here)) return;
  const bool known_gpus = here.from_host()->gpus && here.to_host()->gpus;
  compare_count(here);
  if (!known_gpus) return;  // told once
  compare_models(here);
  compare_memory(here);
  compare_switch(here, "mig", "host gpus: mig",
                 [](const Gpu& one) -> const Truth& { return one.mig; });
  compare_switch(here, "ecc", "host gpus: ecc",
                 [](const Gpu& one) -> const Truth& { return one.ecc; });
  compare_switch(here, "persistence", "host gpus: persistence",
                 [](const Gpu& one) -> const Truth& { return one.persistence; });
  compare_links(here);
}

void gpu_host(Compared& here) {
  if (!has_hosts_with_gpus(here)) return;
  const NvidiaFacts& from = here.from_host()->nvidia;
  const NvidiaFacts& to = here.to_host()->nvidia;
  compare_service(here, "device-nodes", "host nvidia.device_nodes", from.device_nodes,
                  to.device_nodes);
  const bool with_switches = (from.nvswitch && *from.nvswitch) || (to.nvswitch && *to.nvswitch);
  if (with_switches) {
    compare_service(here, "fabric-manager", "host nvidia.fabric_manager", from.fabric_manager,
                    to.fabric_manager);
  }
  const auto direct = [](const NvidiaFacts& one) -> Truth {
    const bool either = (one.peermem && *one.peermem) || (one.dma_buf && *one.dma_buf);
    if (either || (one.peermem && one.dma_buf)) return known(either, "peermem, dma_buf");
    return unknown<bool>(one.peermem ? one.dma_buf.source : one.peermem.source);
  };
  const Truth before = direct(from);
  const Truth after = direct(to);
  if (before && after) compare_service(here, "gpu-direct", "host gpu direct", before, after);
}

}  // namespace mlenv::changes
