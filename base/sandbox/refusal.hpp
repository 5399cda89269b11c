#pragma once
// Why this machine gives no sandbox, and what would change that.
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

}  // namespace mlenv::sandbox
