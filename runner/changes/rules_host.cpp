// The rest of the two hosts: kernel, limits, disks, confinement, network, clock.
#include <algorithm>

#include <fmt/core.h>

#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "runner/changes/rules.hpp"

namespace mlenv::changes {
namespace {

void compare_limit(Compared& here, std::string_view rule, std::string_view what,
                   const Fact<Limit>& from, const Fact<Limit>& to) {
  const bool in_bytes = what.ends_with("_bytes");
  if (!here.know(what, from, to) || *from == *to) return;
  const auto text = [&](const Limit& limit) {
    if (in_bytes || !limit.most) return limit_text(limit);
    return std::to_string(*limit.most);
  };
  here.find(rule, {text(*from), text(*to),
                   is_lower(*from, *to) ? std::nullopt : std::optional(Weight::note)});
}

/// Below this a checkpoint does not fit.
constexpr std::uint64_t kLittleSpace = std::uint64_t{1} << 30U;

void compare_disk(Compared& here, std::string_view name, const DiskFacts& from,
                  const DiskFacts& to) {
  const std::string what = fmt::format("host storage.{}", name);
  if (here.know(what + ".free_bytes", from.free_bytes, to.free_bytes) &&
      (*from.free_bytes < kLittleSpace) != (*to.free_bytes < kLittleSpace)) {
    const bool full = *to.free_bytes < kLittleSpace;
    here.find("disk-space", {bytes_text(*from.free_bytes), bytes_text(*to.free_bytes),
                             full ? Weight::breaks : Weight::note,
                             fmt::format("free disk space ({})", to.path.value.value_or(what))});
  }
  if (from.type && to.type && *from.type != *to.type) {
    here.find(
        "file-system",
        {*from.type, *to.type, {}, fmt::format("file system ({})", to.path.value.value_or(what))});
  }
}

struct Ports {
  std::size_t active = 0;
  double fastest_gbps = 0;
  std::string text() const {
    return active == 0 ? "none active" : fmt::format("{} active, {} Gbit/s", active, fastest_gbps);
  }
  friend bool operator==(const Ports&, const Ports&) = default;
};

Ports active_ports(const std::vector<RdmaPort>& ports) {
  Ports out;
  for (const RdmaPort& port : ports) {
    if (!port.state || *port.state != "ACTIVE") continue;
    ++out.active;
    out.fastest_gbps = std::max(out.fastest_gbps, port.rate_gbps.value.value_or(0));
  }
  return out;
}

/// Of the interfaces that are up; nothing where none tells it (virtual machines).
std::optional<std::uint64_t> fastest_mbps(const std::vector<NetworkInterface>& interfaces) {
  std::optional<std::uint64_t> out;
  for (const NetworkInterface& one : interfaces) {
    const bool counts = one.kind && *one.kind == "physical" && one.state && *one.state == "up";
    if (counts && one.speed_mbps) out = std::max(out.value_or(0), *one.speed_mbps);
  }
  return out;
}

}  // namespace

void kernel(Compared& here) {
  if (here.from_host() == nullptr) return;
  const SystemFacts& from = here.from_host()->system;
  const SystemFacts& to = here.to_host()->system;
  if (here.know("host system.kernel", from.kernel, to.kernel) && *from.kernel != *to.kernel) {
    Said said{*from.kernel, *to.kernel};
    if (version_prefix(*from.kernel, 2) == version_prefix(*to.kernel, 2)) {
      said.effect =
          "a build of the same release: corrections, at times mitigations that cost speed";
    }
    here.find("kernel", std::move(said));
  }
  find_other(here, "wsl", "host system.wsl", from.wsl, to.wsl);
  find_other(here, "container", "host system.container", from.container, to.container);
  if (from.user_id && to.user_id && *from.user_id != *to.user_id) {
    here.find("user", {std::to_string(*from.user_id), std::to_string(*to.user_id)});
  }
  const auto title = [](const SystemFacts& one) {
    return fmt::format("{} {}", one.distribution.value.value_or("unknown"),
                       one.distribution_version.value.value_or(""));
  };
  if (from.distribution && to.distribution && title(from) != title(to)) {
    here.find("distribution", {title(from), title(to)});
  }
}

void limits(Compared& here) {
  if (here.from_host() == nullptr) return;
  const LimitFacts& from = here.from_host()->limits;
  const LimitFacts& to = here.to_host()->limits;
  compare_limit(here, "open-files", "host limits.open_files_soft", from.open_files_soft,
                to.open_files_soft);
  compare_limit(here, "locked-memory", "host limits.memlock_soft_bytes", from.memlock_soft_bytes,
                to.memlock_soft_bytes);
}

void disks(Compared& here) {
  if (here.from_host() == nullptr) return;
  const StorageFacts& from = here.from_host()->storage;
  const StorageFacts& to = here.to_host()->storage;
  compare_disk(here, "store", from.store, to.store);
  compare_disk(here, "temporary", from.temporary, to.temporary);
}

void isolation(Compared& here) {
  if (here.from_host() == nullptr) return;
  const IsolationFacts& from = here.from_host()->isolation;
  const IsolationFacts& to = here.to_host()->isolation;
  if (here.know("host isolation.sandbox", from.sandbox, to.sandbox) &&
      *from.sandbox != *to.sandbox) {
    here.find("namespaces", {value_text(*from.sandbox), value_text(*to.sandbox),
                             *to.sandbox ? std::optional(Weight::note) : std::nullopt});
  }
  const auto compare = [&](const char* what, const Text& before, const Text& after) {
    if (before && after && *before != *after) {
      here.find("confinement", {*before, *after, {}, what});
    }
  };
  compare("AppArmor's profile", from.apparmor_profile, to.apparmor_profile);
  compare("SELinux", from.selinux, to.selinux);
  compare("seccomp", from.seccomp, to.seccomp);
}

void network(Compared& here) {
  if (here.from_host() == nullptr) return;
  const NetworkFacts& from = here.from_host()->network;
  const NetworkFacts& to = here.to_host()->network;
  find_other(here, "host-loopback", "host network.host_is_loopback", from.host_is_loopback,
             to.host_is_loopback);
  if (here.know("host network.rdma", from.rdma, to.rdma)) {
    const Ports before = active_ports(*from.rdma);
    const Ports after = active_ports(*to.rdma);
    if (before != after) here.find("rdma", {before.text(), after.text()});
  }
  if (!here.know("host network.interfaces", from.interfaces, to.interfaces)) return;
  const auto before = fastest_mbps(*from.interfaces);
  const auto after = fastest_mbps(*to.interfaces);
  const auto text = [](std::uint64_t mbps) { return fmt::format("{} Mbit/s", mbps); };
  if (before && after && *before != *after) {
    here.find("network-speed", {text(*before), text(*after)});
  }
}

void clock(Compared& here) {
  if (here.from_host() == nullptr) return;
  const TimeFacts& from = here.from_host()->time;
  const TimeFacts& to = here.to_host()->time;
  find_other(here, "clock", "host time.synchronised", from.synchronised, to.synchronised);
  find_other(here, "clock-source", "host time.clock_source", from.clock_source, to.clock_source);
}

}  // namespace mlenv::changes
