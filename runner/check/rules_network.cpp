// What ranks on several hosts reach each other by.
#include <algorithm>

#include <fmt/core.h>

#include "base/text.hpp"
#include "recipes/text.hpp"
#include "runner/check/rules.hpp"

namespace mlenv {
namespace {

using InterfaceNames = std::vector<std::string>;

/// What a rank's buffers may come to.
constexpr std::uint64_t kLittleLocked = 1ULL << 30U;

const RdmaPort* active_port(const Facts& host) {
  if (!host.network.rdma) return nullptr;
  for (const RdmaPort& port : *host.network.rdma) {
    if (port.state && *port.state == "ACTIVE") return &port;
  }
  return nullptr;
}

/// Interfaces that are up and have an address, as far as that is known.
InterfaceNames usable_names(const Facts& host) {
  InterfaceNames names;
  for (const NetworkInterface& one : *host.network.interfaces) {
    const bool down = one.state && *one.state == "down";
    const bool bare = one.addresses && one.addresses->empty();
    if (!down && !bare) names.push_back(one.name);
  }
  return names;
}

/// NCCL's own reading: names by prefix; `=` in front: exactly; `^`: all but these.
struct Choice {
  bool all_but = false;
  bool exactly = false;
  std::vector<std::string_view> names;

  bool fits(std::string_view interface) const {
    const bool named = std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return exactly ? interface == name : interface.starts_with(name);
    });
    return named != all_but;
  }
};
Choice nccl_choice(std::string_view text) {
  Choice choice;
  choice.all_but = text.starts_with('^');
  if (choice.all_but) text.remove_prefix(1);
  choice.exactly = text.starts_with('=');
  if (choice.exactly) text.remove_prefix(1);
  for (const std::string_view name : split(text, ',')) {
    if (!name.empty()) choice.names.push_back(name);
  }
  return choice;
}

InterfaceNames fitting_interfaces(const Choice& choice, const InterfaceNames& interfaces) {
  InterfaceNames names;
  std::copy_if(interfaces.begin(), interfaces.end(), std::back_inserter(names),
               [&](const std::string& name) { return choice.fits(name); });
  return names;
}

constexpr const char* kInterfaceRule = "interface-choice";

/// NCCL takes it where there is nothing else.
bool is_last_choice(const std::string& name) {
  return name.starts_with("lo") || name.starts_with("docker") || name.starts_with("virbr");
}

void judge_variable(Case& here, std::string_view variable, const Choice& choice,
                    const std::string& value) {
  const InterfaceNames there = usable_names(here.host());
  const InterfaceNames names = fitting_interfaces(choice, there);
  const std::string source =
      fmt::format("image environment; {}", here.host().network.interfaces.source);
  if (names.empty()) {
    const auto better = std::find_if_not(there.begin(), there.end(), is_last_choice);
    here.find(kInterfaceRule,
              {fmt::format("an interface that {}={} names", variable, value),
               there.empty() ? "no interface that is up" : "only " + join(there, ", "), source,
               fmt::format("set it for this host: `-e {}={}`", variable,
                           better == there.end() ? "NAME" : *better)});
    return;
  }
  if (choice.all_but || choice.exactly || names.size() <= choice.names.size()) return;
  here.find(kInterfaceRule,
            {fmt::format("one interface for {}={}", variable, value),
             join(names, ", ") + ": names are prefixes", source,
             fmt::format("write the one that other hosts reach with a `=` before it: `-e {}=={}`",
                         variable, names.front())});
}

/// Networks of the host's own, the fastest first; none where NCCL finds InfiniBand's.
InterfaceNames own_networks(const Facts& host) {
  const InterfaceNames there = usable_names(host);
  std::vector<const NetworkInterface*> own;
  for (const NetworkInterface& one : *host.network.interfaces) {
    if (one.name.starts_with("ib")) return {};
    const bool is_there = std::find(there.begin(), there.end(), one.name) != there.end();
    if (is_there && one.kind && *one.kind == "physical") own.push_back(&one);
  }
  std::stable_sort(own.begin(), own.end(), [](const auto* a, const auto* b) {
    return a->speed_mbps.value.value_or(0) > b->speed_mbps.value.value_or(0);
  });
  InterfaceNames names;
  names.reserve(own.size());
  for (const NetworkInterface* one : own) names.push_back(one->name);
  return names;
}

/// What NCCL takes by itself: InfiniBand's, else any but docker's and loopback, else those. Which
/// of several, which may lead to different networks, is not said.
void judge_default(Case& here) {
  const InterfaceNames there = usable_names(here.host());
  InterfaceNames own = own_networks(here.host());
  if (own.size() > 1) {
    const std::string fastest = own.front();
    std::sort(own.begin(), own.end());
    here.find(kInterfaceRule,
              {"one network by which ranks on other hosts are reached", join(own, ", "),
               here.host().network.interfaces.source,
               fmt::format("name the one that all hosts are on: `-e NCCL_SOCKET_IFNAME=={0} -e "
                           "GLOO_SOCKET_IFNAME={0}`",
                           fastest)});
    return;
  }
  if (!std::all_of(there.begin(), there.end(), is_last_choice)) return;
  here.find(kInterfaceRule,
            {"an interface that other hosts reach",
             there.empty() ? "none that is up" : "only " + join(there, ", "),
             here.host().network.interfaces.source,
             "bring the network's interface up, and name it: `-e NCCL_SOCKET_IFNAME==eth0`"});
}

}  // namespace

void memlock_low(Case& here) {
  constexpr const char* kRule = "memlock-low";
  const auto& soft = here.host().limits.memlock_soft_bytes;
  const auto& nccl = here.image().nccl;
  // It is NCCL that registers the GPUs' buffers with the port.
  if (here.has_gpu().value != true || !here.on_gpus(kRule) || (nccl && nccl->empty())) return;
  if (soft && (!soft->most || *soft->most >= kLittleLocked)) return;
  if (!here.knows(kRule, "host network.rdma", here.host().network.rdma)) return;
  const RdmaPort* port = active_port(here.host());
  if (port == nullptr) return;
  if (!here.knows(kRule, "host limits.memlock_soft_bytes", soft)) return;
  if (!here.knows(kRule, "image nccl", nccl)) return;
  here.find(
      kRule,
      {fmt::format("unlimited locked memory, for NCCL over {} port {}", port->device, port->port),
       size_text(*soft->most), fmt::format("{}; {}", soft.source, here.host().network.rdma.source),
       "`--ulimit memlock=-1`, `ulimit -l unlimited`, or LimitMEMLOCK=infinity of the "
       "service that starts it"});
}

void host_name_loopback(Case& here) {
  constexpr const char* kRule = "host-name-loopback";
  const NetworkFacts& network = here.host().network;
  if (here.use().nodes < 2) return;
  if (!here.knows(kRule, "host network.host_is_loopback", network.host_is_loopback)) return;
  if (!*network.host_is_loopback) return;
  const std::string name = network.host_name.value.value_or("its name");
  here.find(kRule, {fmt::format("an address of {} that other hosts reach", name),
                    network.host_addresses ? join(*network.host_addresses, ", ") : "loopback",
                    network.host_is_loopback.source,
                    fmt::format("take {} off the 127.0… line of /etc/hosts, or give ranks the "
                                "address itself as MASTER_ADDR",
                                name)});
}

void interface_choice(Case& here) {
  const std::string* nccl = variable_of(here.image(), "NCCL_SOCKET_IFNAME");
  const std::string* gloo = variable_of(here.image(), "GLOO_SOCKET_IFNAME");
  const bool by_default = nccl == nullptr && here.use().nodes > 1;
  if (nccl == nullptr && gloo == nullptr && !by_default) return;
  if (!here.knows(kInterfaceRule, "host network.interfaces", here.host().network.interfaces)) {
    return;
  }
  if (nccl != nullptr && !nccl->empty()) {
    judge_variable(here, "NCCL_SOCKET_IFNAME", nccl_choice(*nccl), *nccl);
  }
  if (gloo != nullptr && !gloo->empty()) {
    Choice exact{false, true, split(*gloo, ',')};
    judge_variable(here, "GLOO_SOCKET_IFNAME", exact, *gloo);
  }
  if (by_default) judge_default(here);
}

void gpudirect_missing(Case& here) {
  constexpr const char* kRule = "gpudirect-missing";
  const NvidiaFacts& nvidia = here.host().nvidia;
  const RdmaPort* port = active_port(here.host());
  if (port == nullptr || here.has_gpu().value != true || !here.on_gpus(kRule)) return;
  const bool either = (nvidia.peermem && *nvidia.peermem) || (nvidia.dma_buf && *nvidia.dma_buf);
  if (either) return;
  if (!here.knows(kRule, "host nvidia.peermem", nvidia.peermem)) return;
  if (!here.knows(kRule, "host nvidia.dma_buf", nvidia.dma_buf)) return;
  here.find(kRule, {fmt::format("nvidia-peermem or dma-buf, for {} to read the GPUs' memory",
                                port->device),
                    "neither", fmt::format("{}; {}", nvidia.peermem.source, nvidia.dma_buf.source),
                    "`modprobe nvidia-peermem`, or the open kernel modules on Linux 5.12 or newer; "
                    "else every byte goes through the host's memory"});
}

void clock_unsynchronised(Case& here) {
  const Truth& synchronised = here.host().time.synchronised;
  if (!synchronised || *synchronised) return;
  here.find("clock-unsynchronised",
            {"a clock that is kept right", "the kernel says that nobody does", synchronised.source,
             "start systemd-timesyncd or chrony: times in logs of several hosts differ, and "
             "certificates may count as not yet valid"});
}

}  // namespace mlenv
