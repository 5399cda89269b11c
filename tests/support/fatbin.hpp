#pragma once
// Fat binaries for tests.
#include <string>
#include <vector>

#include "tests/support/zip_builder.hpp"

namespace mlenv::test {

struct FatbinEntry {
  std::uint64_t kind = 2;  ///< 1: PTX, 2: machine code
  std::uint64_t architecture = 80;
  std::uint64_t flags = 0x11;
  std::size_t size = 24;
};

/// As nvcc's fatbinary writes them (laid out like those of libtorch_cuda.so 2.15).
inline std::string fatbin(const std::vector<FatbinEntry>& entries) {
  std::string body;
  for (const FatbinEntry& entry : entries) {
    std::string header = little_endian(entry.kind, 2) + little_endian(0x101, 2) +
                         little_endian(64, 4) + little_endian(entry.size, 8);
    header.resize(28);
    header += little_endian(entry.architecture, 4);
    header.resize(40);
    header += little_endian(entry.flags, 8);
    header.resize(64);
    // Code may hold anything, a container's magic number too.
    body += header + little_endian(0xBA55ED50, 4) + std::string(entry.size - 4, '\x7f');
  }
  return little_endian(0xBA55ED50, 4) + little_endian(1, 2) + little_endian(16, 2) +
         little_endian(body.size(), 8) + body;
}

}  // namespace mlenv::test
