#pragma once
// What a guest is told to make before its keeper starts: texts, each ended by NUL; the first of
// each item says what it is, and how many follow is known by that.
#include <string>
#include <string_view>

namespace mlenv::vm {

// Word and what follows it:
inline constexpr std::string_view kHostName = "hostname";  // the name
inline constexpr std::string_view kTime = "time";          // seconds since 1970
inline constexpr std::string_view kNetwork = "network";    // nothing: QEMU's addresses
inline constexpr std::string_view kShm = "shm";            // size as tmpfs has it
inline constexpr std::string_view kMemory = "memory";      // target, options of mount(8)
inline constexpr std::string_view kShare =
    "share";  // number, target, `folder` or `file`, `ro` or `rw`
inline constexpr std::string_view kReadOnly = "read-only";  // the folder that can be written

/// Adds an item.
template <class... Texts>
void add_item(std::string& setup, const Texts&... texts) {
  (setup.append(texts).append(1, '\0'), ...);
}

}  // namespace mlenv::vm
