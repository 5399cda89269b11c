#pragma once
// One virtual machine while it goes on: QEMU, and the process between its serial port and the
// stage.
#include <functional>
#include <optional>
#include <string>

#include "base/process.hpp"
#include "runner/engine/keeper_client.hpp"
#include "runner/vm/guest_wait.hpp"
#include "runner/vm/qemu.hpp"

namespace mlenv {

/// Its end is theirs. Both are children of this process.
class VirtualMachine {
 public:
  /// `folder` is this run's own; `setup` what the guest is told first (setup.hpp); `scratch` an
  /// open disk (disk/scratch_disk.hpp). After `enter_namespaces`: it mounts.
  VirtualMachine(QemuMachine machine, const fs::path& folder, const std::string& setup,
                 int scratch);
  VirtualMachine(const VirtualMachine&) = delete;
  VirtualMachine& operator=(const VirtualMachine&) = delete;
  /// Lets the guest write what a command has left in its memory, where it still answers.
  ~VirtualMachine();

  /// Until its keeper says hello: then `answer`. Else how the wait for that ended.
  Heard boot(const GuestWatch& watch, std::chrono::milliseconds patience);
  /// From here on, how each further answer of the keeper is waited for. One that does not come is
  /// for who asked as if the container were gone; `heard` tells what it was.
  void wait_with(const GuestWatch& watch, std::chrono::milliseconds patience);
  Heard heard() const { return heard_; }
  /// A command runs in it: it is no longer to be ended without a word.
  void command_started() { has_worked_ = true; }
  /// Why it failed, in the words of whoever knows.
  std::string why() const;

  /// Once it is gone by itself: who or what ended it.
  std::string end();

  Keeper& keeper() { return keeper_; }
  /// Processes that its kernel killed so far for want of memory.
  std::uint64_t memory_kills() const;
  /// errno with which the job's output did not get to our standard output; 0: all did.
  int lost_output() const;
  /// What the guest wrote did not get to its scratch disk: this machine's is full, or broken.
  bool lost_writes() const;

 private:
  void start_link(int port, const std::string& setup);
  std::string said_by_kernel() const;
  std::string said_by_qemu() const;

  fs::path folder_;
  fs::path said_;  ///< what grows at the guest's will: of a size
  std::optional<Child> qemu_;
  Fd qemu_ended_;
  Fd link_ended_;
  pid_t link_ = -1;
  Keeper keeper_;
  GuestWait wait_;
  Heard heard_ = Heard::end;
  bool has_worked_ = false;
};

}  // namespace mlenv
