#include "cli/facts_text.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/printable.hpp"
#include "cli/ui.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

struct Unit {
  std::string_view ending;
  std::string (*show)(std::uint64_t);
};

std::string millicpus(std::uint64_t value) {
  constexpr double kMilli = 1000;
  return fmt::format("{:g} processors", static_cast<double>(value) / kMilli);
}
std::string megabits(std::uint64_t value) {
  constexpr std::uint64_t kKilo = 1000;
  return value % kKilo == 0 ? fmt::format("{} Gbit/s", value / kKilo)
                            : fmt::format("{} Mbit/s", value);
}
std::string bytes(std::uint64_t value) { return human_bytes(value); }

constexpr std::array<Unit, 3> kUnits = {
    {{"_bytes", bytes}, {"_millicpus", millicpus}, {"_mbps", megabits}}};

bool ends_with_unit(std::string_view name, const Unit& unit) { return name.ends_with(unit.ending); }

/// `total_bytes` → `total`, `open_files_soft` → `open files soft`.
std::string label(std::string_view name) {
  for (const Unit& unit : kUnits) {
    if (ends_with_unit(name, unit)) name.remove_suffix(unit.ending.size());
  }
  if (name.ends_with("_gbps")) name.remove_suffix(5);
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string fact_value(std::string_view name, std::uint64_t value) {
  if (name == "mtu_bytes") return fmt::format("{} bytes", value);
  for (const Unit& unit : kUnits) {
    if (ends_with_unit(name, unit)) return unit.show(value);
  }
  return std::to_string(value);
}
std::string fact_value(std::string_view /*name*/, double value) {
  return fmt::format("{:g} Gbit/s", value);
}
std::string fact_value(std::string_view /*name*/, bool value) { return value ? "yes" : "no"; }
std::string fact_value(std::string_view /*name*/, const std::string& value) {
  return printable(value);
}
std::string fact_value(std::string_view /*name*/, const std::vector<std::string>& values) {
  return values.empty() ? "none" : printable(join(values, " "));
}
std::string fact_value(std::string_view name, const Limit& limit) {
  return limit.most ? fact_value(name, *limit.most) : "unlimited";
}

/// The lines of one group, its unknown facts gathered by their reason.
class Paragraph {
 public:
  explicit Paragraph(std::string title) : title_(std::move(title)) {}

  template <class Group>
  void take(const Group& group) {
    Group::fields(group, [this](const char* name, const auto& field) { this->take(name, field); });
  }
  void line(std::string_view name, std::string_view text) {
    constexpr std::size_t kWidth = 32;
    lines_.push_back(fmt::format("  {:<{}}{}", name, kWidth, text));
  }
  template <class T>
  void not_known(const char* name, const Fact<T>& fact) {
    if (!unknown_.contains(fact.source)) reasons_.push_back(fact.source);
    unknown_[fact.source].push_back(label(name));
  }
  void add_to(std::vector<std::string>& text) const {
    if (!text.empty()) text.emplace_back();
    text.push_back(title_);
    text.insert(text.end(), lines_.begin(), lines_.end());
    for (const std::string& reason : reasons_) {
      text.push_back(
          fmt::format("  unknown: {} ({})", join(unknown_.at(reason), ", "), printable(reason)));
    }
  }

 private:
  template <class T>
  void take(const char* name, const Fact<T>& fact) {
    if constexpr (requires { fact_value(name, *fact.value); }) {
      if (fact) {
        line(label(name), fact_value(name, *fact.value));
      } else {
        not_known(name, fact);
      }
    }  // else it has paragraphs of its own
  }
  /// What names the thing is in the title.
  template <class T>
  void take(const char* /*name*/, const T& /*name_of_it*/) {}

  std::string title_;
  std::vector<std::string> lines_;
  std::vector<std::string> reasons_;
  std::map<std::string, std::vector<std::string>> unknown_;
};

template <class Group>
void paragraph(std::vector<std::string>& text, std::string title, const Group& group) {
  Paragraph one(std::move(title));
  one.take(group);
  one.add_to(text);
}

/// A paragraph for each item; one line where there is none.
template <class T, class Title>
void paragraphs(std::vector<std::string>& text, const char* name, const Fact<std::vector<T>>& list,
                Title&& title) {
  if (list) {
    for (const T& one : *list) paragraph(text, printable(title(one)), one);
    if (list->empty()) text.insert(text.end(), {"", fmt::format("{}: none", name)});
    return;
  }
  text.insert(text.end(), {"", fmt::format("{}: unknown ({})", name, printable(list.source))});
}

void containers(std::vector<std::string>& text, const ContainerFacts& facts) {
  Paragraph one("containers");
  if (!facts.engines) one.not_known("engines", facts.engines);
  if (facts.engines && facts.engines->empty()) one.line("engines", "none");
  for (const Engine& engine : facts.engines.value.value_or(std::vector<Engine>{})) {
    one.line(engine.name, printable(engine.version ? *engine.version
                                                   : "version unknown: " + engine.version.source));
  }
  if (!facts.cdi) one.not_known("CDI files", facts.cdi);
  if (facts.cdi && facts.cdi->empty()) one.line("CDI files", "none");
  for (const CdiFile& file : facts.cdi.value.value_or(std::vector<CdiFile>{})) {
    const std::string devices = file.devices ? join(*file.devices, " ") : file.devices.source;
    one.line("CDI", printable(fmt::format("{}: {} {}", file.path,
                                          file.kind ? *file.kind : "unknown kind", devices)));
  }
  one.add_to(text);
}

void paths(std::vector<std::string>& text, const Fact<std::vector<GpuPath>>& list) {
  if (list && list->empty()) return;
  Paragraph one("between GPUs");
  if (!list) one.not_known("paths", list);
  for (const GpuPath& path : list.value.value_or(std::vector<GpuPath>{})) {
    one.line(fmt::format("{} and {}", path.from, path.to),
             printable(path.path ? *path.path : "unknown: " + path.path.source));
  }
  one.add_to(text);
}

}  // namespace

std::vector<std::string> facts_text(const Facts& host) {
  std::vector<std::string> text;
  paragraph(text, "system", host.system);
  paragraph(text, "processor", host.cpu);
  paragraph(text, "memory", host.memory);
  if (!host.memory.numa || host.memory.numa->size() > 1) {
    paragraphs(text, "NUMA nodes", host.memory.numa,
               [](const NumaNode& node) { return fmt::format("NUMA node {}", node.id); });
  }
  paragraph(text, "disk of mlenv's store", host.storage.store);
  paragraph(text, "disk of temporary files", host.storage.temporary);
  paragraph(text, "shared memory", host.storage.shared_memory);
  paragraph(text, "limits", host.limits);
  paragraph(text, "isolation", host.isolation);
  containers(text, host.containers);
  paragraph(text, "NVIDIA", host.nvidia);
  paragraphs(text, "GPUs", host.gpus,
             [](const Gpu& gpu) { return fmt::format("GPU {}", gpu.index); });
  paths(text, host.gpu_paths);
  if (!host.mig_devices || !host.mig_devices->empty()) {
    paragraphs(text, "parts of GPUs (MIG)", host.mig_devices, [](const MigDevice& one) {
      return fmt::format("GPU {}, MIG device {}", one.gpu, one.index);
    });
  }
  paragraph(text, "network", host.network);
  paragraphs(text, "network interfaces", host.network.interfaces,
             [](const NetworkInterface& one) { return "network interface " + one.name; });
  paragraphs(text, "InfiniBand and RoCE", host.network.rdma, [](const RdmaPort& port) {
    return fmt::format("RDMA {} port {}", port.device, port.port);
  });
  paragraph(text, "time", host.time);
  return text;
}

}  // namespace mlenv::cli
