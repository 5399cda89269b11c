#pragma once
// The disk that a virtual machine writes to: an empty ext4 file system in a file that has no name.
#include <cstdint>

#include "base/files.hpp"

namespace mlenv {

inline constexpr std::uint64_t kLeastScratch = std::uint64_t{64} << 20U;
/// libext2fs's 32-bit numbers of blocks end at four times this.
inline constexpr std::uint64_t kMostScratch = std::uint64_t{4} << 40U;

/// So large where nobody says how large: most of what is free where `folder` is.
std::uint64_t usual_scratch_bytes(const fs::path& folder);
/// What is free there for whoever asks.
std::uint64_t free_bytes(const fs::path& folder);

/// Makes it in `folder`. It takes only the room that is written to, and goes with the last
/// descriptor: not even `kill -9` leaves anything. Throws `disk-write`.
Fd make_scratch_disk(const fs::path& folder, std::uint64_t size_bytes);

}  // namespace mlenv
