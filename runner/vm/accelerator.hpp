#pragma once
// Whether this host's own virtualization can be had, found out once per start of the machine.
#include <optional>
#include <string>

#include "runner/own_folder.hpp"
#include "runner/vm/qemu.hpp"

namespace mlenv {

struct AcceleratorChoice {
  Accelerator accelerator = Accelerator::tcg;
  std::string why;
  bool is_tried = true;  ///< whether it works has been seen since the machine was started
};

/// What was seen of KVM so far; nothing: it was not tried.
struct SeenKvm {
  bool works = false;
  std::string why;
  friend bool operator==(const SeenKvm&, const SeenKvm&) = default;
};

/// By what is known: `problem` is why /dev/kvm cannot be opened; empty: it can.
AcceleratorChoice choose_accelerator(const std::string& problem,
                                     const std::optional<SeenKvm>& seen);

/// Opens /dev/kvm; empty: it can be had.
std::string kvm_problem();

/// In a folder of this user's: for this start of the machine, and this QEMU.
class KvmMemory {
 public:
  KvmMemory(const fs::path& folder, const std::string& qemu);
  std::optional<SeenKvm> read() const;
  void write(const SeenKvm& seen) const;

 private:
  OwnFolder folder_;
  std::string name_;
};

}  // namespace mlenv
