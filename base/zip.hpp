#pragma once
// Reading zip archives as wheels use them (APPNOTE.TXT 6.3.10; ZIP64 included): the central
// directory, and where each member's raw bytes lie.
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/files.hpp"

namespace mlenv {

struct ZipMember {
  std::string name;  ///< as in the archive: `/` separates; folders end in `/`
  enum class Method { stored, deflated } method = Method::stored;
  std::uint32_t crc32 = 0;
  std::uint64_t size_bytes = 0;        ///< inflated
  std::uint64_t compressed_bytes = 0;  ///< as in the archive
  std::uint64_t offset = 0;            ///< of the raw data in the file (the local header was read)
  std::uint32_t mode = 0;              ///< Unix permission bits (07777); 0 when not made on Unix
  bool is_folder() const { return name.ends_with('/'); }
};

/// Members sorted by name (bytes). Throws `bad-zip` for: no or inconsistent directory, encryption,
/// other methods, duplicate names, names that are absolute, hold `..`, `.`, empty parts, a
/// backslash or NUL, or are longer than 4096; data outside the file; local headers that contradict
/// the directory; more than 1,000,000 members; overlapping members; symbolic links and devices; a
/// name that is a file and a folder; sizes that DEFLATE cannot reach.
std::vector<ZipMember> read_zip_directory(int fd);

/// Inflated bytes of one member, CRC checked (`bad-zip`, `bad-deflate`). For small ones:
/// `too-large` for more than `limit` bytes.
std::string read_zip_member(int fd, const ZipMember& member, std::uint64_t limit = 64U << 20U);

}  // namespace mlenv
