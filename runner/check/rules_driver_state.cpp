// Whether the driver that is there works.
#include <algorithm>

#include <fmt/core.h>

#include "runner/check/rules.hpp"
#include "runner/probe/cuda_errors.hpp"

namespace mlenv {
namespace {

/// Facts may hold any number.
probe::Status as_status(std::uint64_t number) {
  constexpr std::uint64_t kMost = 999;  // CUDA_ERROR_UNKNOWN, the last
  return number <= kMost ? static_cast<probe::Status>(number) : -1;
}

std::string shown_status(std::uint64_t number) {
  const std::string name = probe::known_name(as_status(number));
  return fmt::format("error {}{}{}", number, name.empty() ? "" : ", ", name);
}

std::string remedy_of(std::uint64_t number) {
  const std::string advice = probe::advice_for(as_status(number));
  return advice.empty() ? "look into `dmesg` for lines with NVRM and Xid; a reboot often helps"
                        : advice;
}

bool is(const Truth& fact, bool value) { return fact && *fact == value; }

bool is_loaded(const Facts& host) {
  return host.nvidia.kernel_driver && *host.nvidia.kernel_driver != "none";
}

bool is_unloaded(const Facts& host) {
  return host.nvidia.kernel_driver && *host.nvidia.kernel_driver == "none";
}

bool lacks_nodes(const Facts& host) {
  return is_loaded(host) && is(host.nvidia.device_nodes, false);
}

bool lacks_fabric_manager(const Facts& host) {
  return is(host.nvidia.nvswitch, true) && is(host.nvidia.fabric_manager, false);
}

/// Whether another rule tells why cuInit fails with this (unknown: with whatever it is). What each
/// lack leads to is in the CUDA driver API's list of CUresult.
bool is_explained(const Facts& host, const Number& status) {
  constexpr std::uint64_t kSystemNotReady = 802;  // CUDA_ERROR_SYSTEM_NOT_READY
  constexpr std::uint64_t kDriverMismatch = 803;  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
  const auto may_be = [&](std::uint64_t number) { return !status || *status == number; };
  return is_unloaded(host) || lacks_nodes(host) ||
         (lacks_fabric_manager(host) && may_be(kSystemNotReady)) ||
         (is(host.nvidia.mismatch, true) && may_be(kDriverMismatch));
}

}  // namespace

void driver_mismatch(Case& here) {
  constexpr const char* kRule = "driver-mismatch";
  const NvidiaFacts& nvidia = here.host().nvidia;
  if (here.has_gpu().value != true || !here.on_gpus(kRule) || is_unloaded(here.host())) return;
  const bool on_wsl = is(here.host().system.wsl, true);
  if (on_wsl || !here.knows(kRule, "host nvidia.mismatch", nvidia.mismatch)) return;
  if (!*nvidia.mismatch) return;
  here.find(kRule,
            {"kernel module and libraries of one driver version",
             fmt::format("module {}, libraries {}", nvidia.kernel_driver.value.value_or("unknown"),
                         nvidia.user_driver.value.value_or("unknown")),
             fmt::format("{}; {}", nvidia.kernel_driver.source, nvidia.user_driver.source),
             "reboot, or unload and load the nvidia modules: the driver was updated under a "
             "running kernel"});
}

void driver_not_loaded(Case& here) {
  constexpr const char* kRule = "driver-not-loaded";
  const NvidiaFacts& nvidia = here.host().nvidia;
  const Texts& pci = nvidia.pci_devices;
  if (!pci || pci->empty() || !here.on_gpus(kRule)) return;
  if (!is_unloaded(here.host())) return;  // unknown: rule driver-too-old says so
  here.find(kRule,
            {"a loaded NVIDIA driver",
             fmt::format("{} NVIDIA GPU{} on the bus, no driver", pci->size(),
                         pci->size() == 1 ? "" : "s"),
             fmt::format("{}; {}", pci.source, nvidia.kernel_driver.source),
             here.in_container()
                 ? "load the driver on the machine itself: `modprobe nvidia`"
                 : "install the NVIDIA driver, or load it: `modprobe nvidia`; with Secure Boot its "
                   "module must be signed"});
}

void device_nodes_missing(Case& here) {
  constexpr const char* kRule = "device-nodes-missing";
  const NvidiaFacts& nvidia = here.host().nvidia;
  if (!is_loaded(here.host()) || !here.on_gpus(kRule)) return;
  if (!here.knows(kRule, "host nvidia.device_nodes", nvidia.device_nodes)) return;
  if (*nvidia.device_nodes) return;
  here.find(kRule,
            {"/dev/nvidiactl and /dev/nvidia-uvm",
             fmt::format("driver {}, no such files", *nvidia.kernel_driver),
             fmt::format("{}; {}", nvidia.device_nodes.source, nvidia.kernel_driver.source),
             here.in_container()
                 ? "start the container with its GPUs (`--device nvidia.com/gpu=all`); after a "
                   "`systemctl daemon-reload` start it again"
                 : "`nvidia-modprobe -u -c 0` makes them"});
}

void fabric_manager_missing(Case& here) {
  constexpr const char* kRule = "fabric-manager-missing";
  const NvidiaFacts& nvidia = here.host().nvidia;
  if (!is(nvidia.nvswitch, true) || !here.on_gpus(kRule)) return;
  if (!here.knows(kRule, "host nvidia.fabric_manager", nvidia.fabric_manager)) return;
  if (*nvidia.fabric_manager) return;
  here.find(kRule,
            {"nv-fabricmanager, which sets up the NVSwitches", "it does not run",
             fmt::format("{}; {}", nvidia.nvswitch.source, nvidia.fabric_manager.source),
             fmt::format("install and start nvidia-fabricmanager of version {}, the driver's own",
                         nvidia.kernel_driver.value.value_or("the same"))});
}

void cuda_init_fails(Case& here) {
  constexpr const char* kRule = "cuda-init-fails";
  const Number& status = here.host().nvidia.cuda_status;
  if (here.has_gpu().value != true || !here.on_gpus(kRule)) return;
  if (is_explained(here.host(), status)) return;
  if (!here.knows(kRule, "host nvidia.cuda_status", status) || *status == 0) return;
  here.find(kRule, {"cuInit to succeed", shown_status(*status), status.source, remedy_of(*status)});
}

void persistence_off(Case& here) {
  const Facts& host = here.host();
  if (here.uses_cuda().value != true || here.use().gpus == 0U || !host.gpus) return;
  if (here.in_container() || !is(host.nvidia.persistence_daemon, false)) return;
  const auto off = std::find_if(host.gpus->begin(), host.gpus->end(),
                                [](const Gpu& gpu) { return is(gpu.persistence, false); });
  if (off == host.gpus->end()) return;
  here.find("persistence-off",
            {"a driver that stays loaded",
             fmt::format("persistence is off for GPU {}, and nvidia-persistenced does not run",
                         off->index),
             fmt::format("{}; {}", off->persistence.source, host.nvidia.persistence_daemon.source),
             "`systemctl enable --now nvidia-persistenced`: programs then start seconds sooner"});
}

}  // namespace mlenv
