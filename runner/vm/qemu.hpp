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
  std::vector<PublishedPort> ports;
  bool has_network = true;
};

/// `q35`; `microvm`, which has less to look for when it starts, where one processor is asked for:
/// with several, kernels are seen to hang in it when it is emulated.
std::string machine_type(const VmSpec& spec);

std::vector<std::string> qemu_words(const QemuMachine& machine);

}  // namespace mlenv
