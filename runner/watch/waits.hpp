#pragma once
// What a thread waits for: told by the system call in which it is (/proc/PID/syscall) and what its
// descriptor leads to. Where the kernel does not tell us (another user's process, no
// CONFIG_HAVE_ARCH_TRACEHOOK), its state alone says whether it waits for a device.
#include <array>

#include "base/files.hpp"
#include "runner/watch/counters.hpp"

namespace mlenv::watch {

/// /proc/PID/syscall.
struct SystemCall {
  bool running = false;
  bool none = false;  ///< it waits, but in no call: for a page of a file
  long number = -1;
  std::array<std::uint64_t, 6> arguments{};
};
std::optional<SystemCall> parse_system_call(std::string_view text);

struct Waiting {
  Wait wait = Wait::other;
  std::string what;  ///< a path or address; may be empty
};

/// `process` is its folder in /proc, `state` that of the thread.
Waiting waiting_of(const fs::path& process, pid_t thread, char state);

/// `10.0.0.5:443` of the kernel's `0500000A:01BB`; IPv6 too. Empty for what is neither.
std::string address_of(std::string_view hex);

}  // namespace mlenv::watch
