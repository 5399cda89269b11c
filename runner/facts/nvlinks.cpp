#include "runner/facts/nvlinks.hpp"

#include <algorithm>

namespace mlenv::nvidia {
namespace {

constexpr unsigned kMostNvlinks = 36;  // more than any NVML_NVLINK_MAX_LINKS so far
constexpr const char* kLinkStateCall = "nvmlDeviceGetNvLinkState";
constexpr const char* kRemoteCall = "nvmlDeviceGetNvLinkRemotePciInfo_v2";

unsigned led_to(const Links& links, const Text& address) {
  const auto found = address ? links.ends.find(*address) : links.ends.end();
  return found == links.ends.end() ? 0 : found->second;
}

}  // namespace

Fact<Links> links_of(const Calls& nvml, Device device) {
  Links links;
  for (unsigned link = 0; link < kMostNvlinks; ++link) {
    unsigned is_up = 0;
    const auto wrong =
        nvml.failure<Status(Device, unsigned, unsigned*)>(kLinkStateCall, device, link, &is_up);
    constexpr Status kInvalid = 2;
    constexpr Status kNotSupported = 3;
    if (wrong && (nvml.status() == kInvalid || nvml.status() == kNotSupported)) break;
    if (wrong) return unknown<Links>(*wrong);
    if (is_up == 0) continue;
    PciInfo other{};
    const auto nameless =
        nvml.failure<Status(Device, unsigned, PciInfo*)>(kRemoteCall, device, link, &other);
    if (nameless || other.bus_id.front() == '\0') {
      ++links.untold;
    } else {
      ++links.ends[other.bus_id.data()];
    }
  }
  return known(std::move(links), kLinkStateCall);
}

Number count_of(const Fact<Links>& links) {
  return derived<std::uint64_t>(links, [](const Links& all) {
    std::uint64_t count = all.untold;
    for (const auto& [end, some] : all.ends) count += some;
    return std::optional(count);
  });
}

Number links_between(const LinkedGpu& a, const LinkedGpu& b) {
  for (const LinkedGpu* one : {&a, &b}) {
    if (!one->links) return unknown<std::uint64_t>(one->links.source);
    if (!one->pci_address) return unknown<std::uint64_t>(one->pci_address.source);
  }
  if (a.links->untold > 0 && b.links->untold > 0) {
    return unknown<std::uint64_t>(fmt::format("{} does not tell where {} and {} links lead",
                                              kRemoteCall, a.links->untold, b.links->untold));
  }
  // Where one of them cannot tell, the other can.
  const std::uint64_t direct =
      std::max(led_to(*a.links, b.pci_address), led_to(*b.links, a.pci_address));
  if (direct > 0) return known(direct, kRemoteCall);
  std::uint64_t common = 0;
  for (const auto& [end, links] : a.links->ends) {
    common += std::min(links, led_to(*b.links, known(end, kRemoteCall)));
  }
  const bool may_share =
      a.links->untold + b.links->untold > 0 && *count_of(a.links) > 0 && *count_of(b.links) > 0;
  if (common == 0 && may_share) {
    return unknown<std::uint64_t>(fmt::format("{} does not tell where {} links lead", kRemoteCall,
                                              a.links->untold + b.links->untold));
  }
  return known(common, kRemoteCall);
}

}  // namespace mlenv::nvidia
