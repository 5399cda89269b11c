#pragma once
// Why this machine gives no sandbox, and what would change that.
#include <chrono>
#include <string>

#include "base/error.hpp"
#include "base/files.hpp"

namespace mlenv::sandbox {

/// What the reason is looked for in. Of this process unless told.
struct Surroundings {
  fs::path root = "/";
  bool is_root = false;
  bool in_kubernetes = false;  ///< as its variables say
  static Surroundings of_process();
};

/// `error` with the reason and the hint that the machine's settings suggest, when it is a
/// `sandbox-failed`; else as it is.
Error explained(Error error, const Surroundings& where = Surroundings::of_process());

/// What the other half says through `report` of why the program cannot be started; empty once it is
/// started. Throws `sandbox-failed` when the deadline passes first.
std::string trouble_in(const Fd& report, std::chrono::milliseconds deadline);

/// Setting up is some mounts: where it takes so long a file system does not answer.
inline constexpr std::chrono::minutes kLongestSetUp{5};
Error late_set_up();

}  // namespace mlenv::sandbox
