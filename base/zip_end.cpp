#include <algorithm>
#include <optional>

#include "base/zip_file.hpp"

namespace mlenv::zip {
namespace {

constexpr std::uint32_t kEndSignature = 0x06054B50;
constexpr std::uint32_t kEnd64Signature = 0x06064B50;
constexpr std::uint32_t kLocator64Signature = 0x07064B50;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kLocator64Bytes = 20;
constexpr std::size_t kCommentLimit = 65535;

/// ZIP64 end of central directory (APPNOTE 4.3.14, 4.3.15) before the end record at `end`, if any.
std::optional<Directory> read_directory64(const File& file, std::uint64_t end) {
  if (end < kLocator64Bytes) return std::nullopt;
  const Bytes locator = file.read(end - kLocator64Bytes, kLocator64Bytes);
  Fields fields{locator};
  if (fields.u32() != kLocator64Signature) return std::nullopt;
  const std::uint32_t disk = fields.u32();
  const std::uint64_t offset = fields.u64();
  const std::uint32_t disks = fields.u32();
  if (disk != 0 || disks > 1) throw bad_zip("it spans several disks");
  const Bytes record = file.read(offset, kEnd64Bytes);
  Fields end64{record};
  if (end64.u32() != kEnd64Signature)
    throw bad_zip("its ZIP64 end record is not where it should be");
  const std::uint64_t length = end64.u64();
  if (offset + 12 > end - kLocator64Bytes || length != end - kLocator64Bytes - offset - 12) {
    throw bad_zip("its ZIP64 end record has a wrong length");
  }
  (void)end64.u32();  // versions made by, needed
  if (end64.u32() != 0 || end64.u32() != 0) throw bad_zip("it spans several disks");
  const std::uint64_t here = end64.u64();
  Directory directory;
  directory.members = end64.u64();
  if (here != directory.members) throw bad_zip("it spans several disks");
  directory.size_bytes = end64.u64();
  directory.offset = end64.u64();
  if (directory.size_bytes > offset || directory.offset != offset - directory.size_bytes) {
    throw bad_zip("its directory does not end at its end record");
  }
  return directory;
}

/// Whether each field of the short end record says the same as the ZIP64 one, or that it is there.
bool ends_agree(const Directory& narrow, const Directory& wide) {
  return (narrow.members == 0xFFFF || narrow.members == wide.members) &&
         (narrow.size_bytes == kIn64 || narrow.size_bytes == wide.size_bytes) &&
         (narrow.offset == kIn64 || narrow.offset == wide.offset);
}

}  // namespace

Directory find_directory(const File& file) {
  if (file.size() < kEndBytes) throw bad_zip("it is too short");
  const std::uint64_t tail_bytes = std::min<std::uint64_t>(file.size(), kEndBytes + kCommentLimit);
  const std::uint64_t tail_offset = file.size() - tail_bytes;
  const Bytes tail = file.read(tail_offset, tail_bytes);
  for (std::size_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
    Fields fields{ByteView(tail).subspan(at)};
    if (fields.u32() != kEndSignature) continue;
    const std::uint16_t disk = fields.u16();
    const std::uint16_t start_disk = fields.u16();
    const std::uint16_t here = fields.u16();
    Directory directory;
    directory.members = fields.u16();
    directory.size_bytes = fields.u32();
    directory.offset = fields.u32();
    // A signature within the comment: other readers might take another record for the real one.
    if (fields.u16() != fields.left()) throw bad_zip("its end record is ambiguous");
    const std::uint64_t end = tail_offset + at;
    const std::optional<Directory> wide = read_directory64(file, end);
    if (wide) {
      if (!ends_agree(directory, *wide)) throw bad_zip("its two end records contradict each other");
      return *wide;
    }
    if (disk != 0 || start_disk != 0 || here != directory.members) {
      throw bad_zip("it spans several disks");
    }
    if (directory.size_bytes > end || directory.offset != end - directory.size_bytes) {
      throw bad_zip("its directory does not end at its end record");
    }
    return directory;
  }
  throw bad_zip("it has no end record");
}

}  // namespace mlenv::zip
