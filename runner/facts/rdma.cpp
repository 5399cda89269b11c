// InfiniBand and RoCE, as the kernel's Documentation/ABI/stable/sysfs-class-infiniband has it.
#include <charconv>

#include "base/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

/// `4: ACTIVE`
std::optional<std::string> port_state(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return std::string(trim(std::string_view(text).substr(colon + 1)));
}

/// `400 Gb/sec (4X NDR)`, `2.5 Gb/sec (1X SDR)`
std::optional<double> gigabits_in(const std::string& text) {
  const auto words = words_of(text);
  if (words.size() < 2 || words[1] != "Gb/sec") return std::nullopt;
  double rate = 0;
  const auto [end, error] =
      std::from_chars(words[0].data(), words[0].data() + words[0].size(), rate);
  if (error != std::errc{} || end != words[0].data() + words[0].size()) return std::nullopt;
  return rate;
}

/// RoCE's ports name theirs; IPoIB's interface hangs below the device.
Text port_interface(const FactSources& from, const fs::path& device, const fs::path& port) {
  if (Text own = file_text(from, port / "gid_attrs/ndevs/0"); own && !own->empty()) return own;
  const Texts below = names_in(from, device / "device/net");
  if (!below) return unknown<std::string>(below.source);
  if (below->size() == 1) return known(below->front(), below.source);
  return unknown<std::string>(below.source + ": it has several");
}

RdmaPort port_of(const FactSources& from, const std::string& name, std::uint64_t number) {
  const fs::path device = fs::path("/sys/class/infiniband") / name;
  const fs::path port = device / "ports" / std::to_string(number);
  RdmaPort one;
  one.device = name;
  one.port = number;
  one.link = file_text(from, port / "link_layer");
  one.state = derived<std::string>(file_text(from, port / "state"), port_state);
  one.interface = port_interface(from, device, port);
  one.rate_gbps = derived<double>(file_text(from, port / "rate"), gigabits_in);
  return one;
}

}  // namespace

Fact<std::vector<RdmaPort>> probe_rdma(const FactSources& from) {
  using Ports = std::vector<RdmaPort>;
  const Texts devices = names_in(from, "/sys/class/infiniband");
  if (!devices) {
    // No driver of the kind is loaded, where /sys can be seen at all.
    return present(from, "/sys/class/net") ? known(Ports{}, devices.source)
                                           : unknown<Ports>(devices.source);
  }
  Ports ports;
  for (const std::string& name : *devices) {
    const Texts numbers = names_in(from, fs::path("/sys/class/infiniband") / name / "ports");
    if (!numbers) return unknown<Ports>(numbers.source);
    for (const std::string& number : *numbers) {
      if (const auto port = number_of(number)) ports.push_back(port_of(from, name, *port));
    }
  }
  return known(std::move(ports), devices.source);
}

}  // namespace mlenv
