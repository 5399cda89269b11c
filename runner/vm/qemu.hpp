#pragma once
// A virtual machine as the words of QEMU.
#include <string>
#include <vector>

#include "base/files.hpp"
#include "runner/local/options.hpp"
#include "runner/vm/spec.hpp"

namespace mlenv {

enum class Accelerator { kvm, tcg };

struct QemuMachine {
  VmSpec spec;
  Accelerator accelerator = Accelerator::tcg;
  fs::path initial_disk;
  fs::path shares;          ///< a folder, shown to the guest as kShareTag
  bool owners_kept = true;  ///< of what the guest makes in it; else all of it is this process's
  fs::path console;         ///< a file for what the kernel says
  int port = 3;             ///< its descriptor of the serial port's socket
  int scratch = 4;          ///< its descriptor of the disk that is written to
  std::vector<PublishedPort> ports;
  bool has_network = true;
};

/// The kind of machine. Not `microvm`: the distribution's kernel finds that one's devices by ACPI
/// alone (it is built without CONFIG_VIRTIO_MMIO_CMDLINE_DEVICES), and with microvm's reduced ACPI
/// and without KVM it has no clock to measure its timers by, and stands still.
inline constexpr const char* kMachineType = "q35";

std::vector<std::string> qemu_words(const QemuMachine& machine);

}  // namespace mlenv
