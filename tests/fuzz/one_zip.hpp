#pragma once
// What must hold for any bytes given as a zip file.
#include <stdexcept>

#include <sys/mman.h>

#include "base/error.hpp"
#include "base/zip.hpp"

namespace mlenv::fuzz {

/// True when the archive and all its members were read.
inline bool one_zip(ByteView input) {
  constexpr std::uint64_t kContentLimit = std::uint64_t{1} << 20;
  const Fd fd{::memfd_create("zip", MFD_CLOEXEC)};
  write_all(fd.get(), input);
  try {
    for (const ZipMember& member : read_zip_directory(fd.get())) {
      if (member.offset + member.compressed_bytes > input.size()) {
        throw std::logic_error("a member outside the file");
      }
      (void)read_zip_member(fd.get(), member, kContentLimit);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace mlenv::fuzz
