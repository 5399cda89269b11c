#pragma once
// What the fuzzers call, and the unit test calls with the corpus: each takes any bytes and must
// either succeed or throw an Error.
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/tar.hpp"
#include "base/zip.hpp"

namespace mlenv::fuzz {

constexpr std::uint64_t kContentLimit = std::uint64_t{1} << 20;

/// Whether it was accepted.
inline bool read_zip(ByteView input) {
  const Fd fd{::memfd_create("zip", MFD_CLOEXEC)};
  write_all(fd.get(), input);
  try {
    for (const ZipMember& member : read_zip_directory(fd.get())) {
      (void)read_zip_member(fd.get(), member, kContentLimit);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// What is read can be written, and reads the same.
inline bool read_tar(ByteView input) {
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
    if (entry.path != paths.at(next++)) std::abort();
  });
  if (next != paths.size()) std::abort();
  return true;
}

}  // namespace mlenv::fuzz
