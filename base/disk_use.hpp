#pragma once
// What files take on the disk.
#include <sys/stat.h>
#include <cstdint>

namespace mlenv {

/// By its blocks, of 512 bytes each whatever the file system (stat(2)): holes take nothing.
inline std::uint64_t bytes_on_disk(const struct stat& status) {
  constexpr std::uint64_t kBlock = 512;
  return static_cast<std::uint64_t>(status.st_blocks) * kBlock;
}

}  // namespace mlenv
