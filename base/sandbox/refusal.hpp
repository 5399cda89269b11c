#pragma once
// Why this machine gives no sandbox, and what would change that.
#include "base/error.hpp"

namespace mlenv::sandbox {

/// `error` with the reason and the hint that this machine's settings suggest, when it is a
/// `sandbox-failed`; else as it is.
Error explained(Error error);

}  // namespace mlenv::sandbox
