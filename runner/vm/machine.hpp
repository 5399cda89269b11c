#pragma once
// One virtual machine while it goes on: QEMU, and the process between its serial port and the
// stage.
#include <functional>
#include <optional>
#include <string>

#include "base/process.hpp"
#include "runner/engine/keeper_client.hpp"
#include "runner/vm/qemu.hpp"

namespace mlenv {

/// What may end the wait for a guest.
struct BootWatch {
  int socket = -1;   ///< when its other end closes there is nobody to run it for
  int signals = -1;  ///< a signalfd
  std::chrono::milliseconds patience{0};
};

/// Its end is theirs. Both are children of this process.
class VirtualMachine {
 public:
  /// `folder` is this run's own; `setup` what the guest is told first (setup.hpp); `scratch` an
  /// open disk (disk/scratch_disk.hpp).
  VirtualMachine(QemuMachine machine, const fs::path& folder, const std::string& setup,
                 int scratch);
  VirtualMachine(const VirtualMachine&) = delete;
  VirtualMachine& operator=(const VirtualMachine&) = delete;
  /// Lets the guest write what it has in memory, where it still answers.
  ~VirtualMachine();

  enum class Boot { done, too_slow, failed, signalled };
  /// Until its keeper says hello.
  Boot wait(const BootWatch& watch);
  int signal() const { return signal_; }  ///< that came meanwhile
  /// Why it failed, in the words of whoever knows.
  std::string why() const;

  /// Once it is gone by itself: who or what ended it.
  std::string end();

  Keeper& keeper() { return keeper_; }
  /// Processes that its kernel killed so far for want of memory.
  std::uint64_t memory_kills() const;
  /// What the guest wrote did not get to its scratch disk: this machine's is full, or broken.
  bool lost_writes() const;

 private:
  void start_link(int port, const std::string& setup);
  void take_signals(int signals);

  fs::path folder_;
  std::optional<Child> qemu_;
  Fd link_ended_;
  pid_t link_ = -1;
  Keeper keeper_;
  int signal_ = 0;
  bool is_up_ = false;
};

}  // namespace mlenv
