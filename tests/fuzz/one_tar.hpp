#pragma once
// What must hold for any bytes given as a tar.
#include <stdexcept>

#include "base/error.hpp"
#include "base/tar.hpp"

namespace mlenv::fuzz {

/// True when it was read. Throws std::logic_error when what was read cannot be written and read
/// again.
inline bool one_tar(ByteView input) {
  constexpr std::uint64_t kContentLimit = std::uint64_t{1} << 20;
  MemorySource source{input};
  std::string written;
  std::vector<std::string> paths;
  try {
    mlenv::read_tar(source, [&](const TarEntry& entry, Source& data) {
      const std::string content = read_all(data, kContentLimit);
      if (content.size() != entry.size_bytes) return;
      written += as_text(tar_header(entry));
      written += content;
      written.append(tar_padding(content.size()), '\0');
      paths.push_back(entry.path);
    });
  } catch (const Error&) {
    return false;
  }
  if (paths.empty()) return true;
  written += as_text(tar_end());
  MemorySource again{as_bytes(written)};
  std::size_t next = 0;
  mlenv::read_tar(again, [&](const TarEntry& entry, Source&) {
    if (entry.path != paths.at(next++)) {
      throw std::logic_error("a path changes when it is written and read");
    }
  });
  if (next != paths.size()) {
    throw std::logic_error("an entry is lost when it is written and read");
  }
  return true;
}

}  // namespace mlenv::fuzz
