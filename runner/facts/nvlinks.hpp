#pragma once
// NVLinks of GPUs, and how many lead from one to another.
#include <map>
#include <string>

#include "runner/facts/nvidia_calls.hpp"

namespace mlenv::nvidia {

/// A GPU's links that are up.
struct Links {
  std::map<std::string, unsigned> ends;  ///< by bus address of the other end, a GPU or an NVSwitch
  unsigned untold = 0;                   ///< that lead nobody knows where
};

/// nvmlPciInfo_t, of nvmlDeviceGetPciInfo_v3 and nvmlDeviceGetNvLinkRemotePciInfo_v2.
struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  std::array<char, 32> bus_id;
};

Fact<Links> links_of(const Calls& nvml, Device device);

/// Links up, wherever they lead.
Number count_of(const Fact<Links>& links);

struct LinkedGpu {
  Text pci_address;
  Fact<Links> links;
};
/// Links from one to the other, or by way of switches that both have: then as many as the one with
/// fewer has. Unknown where some of both lead nobody knows where.
Number links_between(const LinkedGpu& a, const LinkedGpu& b);

}  // namespace mlenv::nvidia
