#pragma once
// A virtual machine: what is asked for, and what it then was.
#include <cstdint>
#include <string>

namespace mlenv {

/// Everything is there already; paths are of this machine.
struct VmSpec {
  std::string qemu;            ///< the program
  std::string disk;            ///< of the image
  std::string kernel;          ///< its file
  std::string modules;         ///< a cpio archive of the kernel's modules
  std::string kernel_version;  ///< `6.1.0-56-amd64`
  std::string kernel_lock;     ///< digest of the file that says which bytes it is
  std::string remembered;      ///< a folder of this user's, for whether KVM works here
  std::uint64_t memory_bytes = 0;
  std::uint64_t cpus = 1;
  std::uint64_t disk_bytes = 0;  ///< of the disk for what is written
  bool quiet = false;            ///< nothing is said of emulation
  friend bool operator==(const VmSpec&, const VmSpec&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("qemu", self.qemu);
    visit("disk", self.disk);
    visit("kernel", self.kernel);
    visit("modules", self.modules);
    visit("kernel_version", self.kernel_version);
    visit("kernel_lock", self.kernel_lock);
    visit("remembered", self.remembered);
    visit("memory_bytes", self.memory_bytes);
    visit("cpus", self.cpus);
    visit("disk_bytes", self.disk_bytes);
    visit("quiet", self.quiet);
  }
};

/// In a run's record.
struct VmUse {
  std::string accelerator;  ///< `kvm`, or `tcg`: emulated
  std::string why;          ///< KVM was taken, or was not
  std::string machine;      ///< QEMU's name for it: `q35`
  std::string kernel;
  std::string kernel_lock;
  std::uint64_t memory_bytes = 0;
  std::uint64_t cpus = 1;
  std::uint64_t disk_bytes = 0;  ///< 0: what was written lay in memory
  friend bool operator==(const VmUse&, const VmUse&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("accelerator", self.accelerator);
    visit("why", self.why);
    visit("machine", self.machine);
    visit("kernel", self.kernel);
    visit("kernel_lock", self.kernel_lock);
    visit("memory_bytes", self.memory_bytes);
    visit("cpus", self.cpus);
    visit("disk_bytes", self.disk_bytes);
  }
};

}  // namespace mlenv
