#pragma once
// The end of a child that should have ended by itself.
#include <sys/types.h>
#include <chrono>
#include <functional>

namespace mlenv {

/// Reaps the child `pid`. After `most` it is killed, unless `may_take_longer` says that it has work
/// still; and it is left to the kernel where it does not die even then.
void reap_soon(pid_t pid, std::chrono::milliseconds most,
               const std::function<bool()>& may_take_longer = {}) noexcept;

}  // namespace mlenv
