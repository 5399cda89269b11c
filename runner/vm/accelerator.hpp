#pragma once
// Whether this host's own virtualization can be had: tried, and remembered for this start of the
// machine. That it does not work is remembered for an hour, since a machine may just have been too
// busy; where a longer try then says the same, for a day.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runner/own_folder.hpp"
#include "runner/vm/qemu.hpp"

namespace mlenv {

/// What was seen of KVM so far; nothing: it was not tried.
struct SeenKvm {
  bool works = false;
  std::string why;             ///< it does not
  std::uint64_t failures = 0;  ///< in a row
  std::int64_t at = 0;         ///< of the last one, in seconds since 1970
  friend bool operator==(const SeenKvm&, const SeenKvm&) = default;

  /// One more failure.
  static SeenKvm failed(const std::optional<SeenKvm>& before, std::string why, std::int64_t now);
  /// So long it is not tried again; 0 or less: it is.
  std::chrono::seconds rest(std::int64_t now) const;
};

struct AcceleratorChoice {
  Accelerator accelerator = Accelerator::tcg;
  std::string why;
  std::chrono::seconds patience{0};  ///< with a guest that has not said hello yet
};

/// By what is known: `problem` is why /dev/kvm cannot be opened; empty: it can.
AcceleratorChoice choose_accelerator(const std::string& problem, const std::optional<SeenKvm>& seen,
                                     std::int64_t now);
/// Emulated, for this reason.
AcceleratorChoice emulation(std::string why);

/// Opens /dev/kvm; empty: it can be had.
std::string kvm_problem();

/// In a folder of this user's: for this start of the machine, and this QEMU, by its path, size and
/// time.
class KvmMemory {
 public:
  KvmMemory(const fs::path& folder, const std::string& qemu);
  std::optional<SeenKvm> read() const;
  void write(const SeenKvm& seen) const;
  /// Where that is. Removing it is forgetting.
  const fs::path& file() const { return file_; }

 private:
  OwnFolder folder_;
  std::string name_;
  fs::path file_;
};

}  // namespace mlenv
