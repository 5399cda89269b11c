#include "base/zip.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/zip_file.hpp"

namespace mlenv {
namespace {

using zip::bad_zip;
using zip::Directory;
using zip::Fields;
using zip::File;
using zip::find_directory;
using zip::kIn64;

constexpr std::uint32_t kLocalSignature = 0x04034B50;
constexpr std::uint32_t kCentralSignature = 0x02014B50;
constexpr std::size_t kLocalBytes = 30;
constexpr std::size_t kCentralBytes = 46;
constexpr std::uint64_t kMemberLimit = 1'000'000;
constexpr std::uint64_t kDirectoryLimit = std::uint64_t{1} << 29;
constexpr std::size_t kNameLimit = 4096;
constexpr std::uint16_t kZip64Extra = 1;
constexpr std::uint16_t kFlagEncrypted = 1U | 1U << 6U | 1U << 13U;
constexpr std::uint16_t kFlagDescriptor = 1U << 3U;  ///< sizes and CRC follow the data
/// DEFLATE cannot shrink by more (258 bytes in two bits).
constexpr std::uint64_t kMostInflation = 1032;

/// Sizes and offset as a header gives them, those that do not fit replaced from its ZIP64 extra
/// field (APPNOTE 4.5.3).
struct Extent {
  std::uint64_t size_bytes = 0;
  std::uint64_t compressed_bytes = 0;
  std::uint64_t header_offset = 0;
};

void widen(Extent& extent, ByteView extra) {
  if (extent.size_bytes != kIn64 && extent.compressed_bytes != kIn64 &&
      extent.header_offset != kIn64) {
    return;
  }
  Fields fields{extra};
  while (fields.left() >= 4) {
    const std::uint16_t tag = fields.u16();
    const std::uint16_t length = fields.u16();
    Fields body{fields.bytes(length)};
    if (tag != kZip64Extra) continue;
    for (std::uint64_t* value :
         {&extent.size_bytes, &extent.compressed_bytes, &extent.header_offset}) {
      if (*value == kIn64) *value = body.u64();
    }
    return;
  }
}

void check_name(std::string_view name) {
  if (name.empty()) throw bad_zip("a member has no name");
  if (name.size() > kNameLimit) throw bad_zip("a name is longer than {} bytes", kNameLimit);
  if (name.find('\0') != std::string_view::npos) throw bad_zip("a name holds a NUL byte");
  if (name.find('\\') != std::string_view::npos) throw bad_zip("`{}` holds a backslash", name);
  std::string_view rest = name;
  if (rest.ends_with('/')) rest.remove_suffix(1);
  while (true) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == "..") {
      throw bad_zip("`{}` is not a plain relative path", name);
    }
    if (slash == std::string_view::npos) return;
    rest.remove_prefix(slash + 1);
  }
}

/// A member together with what is needed to check its local header.
struct ZipEntry {
  ZipMember member;
  std::uint64_t header_offset = 0;
  std::uint16_t flags = 0;
};

ZipMember::Method method_of(std::uint16_t number, std::string_view name) {
  if (number == 0) return ZipMember::Method::stored;
  if (number == 8) return ZipMember::Method::deflated;
  throw bad_zip("`{}` is compressed by method {}, which wheels do not use", name, number);
}

std::uint32_t unix_mode(std::uint16_t made_by, std::uint32_t attributes, std::string_view name) {
  constexpr unsigned kMadeOnUnix = 3;
  constexpr unsigned kMadeOnMac = 19;
  const unsigned host = made_by >> 8U;
  const std::uint32_t mode = attributes >> 16U;
  const std::uint32_t type = mode & S_IFMT;
  if (S_ISLNK(mode)) throw bad_zip("`{}` is a symbolic link", name);
  if (host != kMadeOnUnix && host != kMadeOnMac) return 0;
  if (type != 0 && type != S_IFREG && type != S_IFDIR) {
    throw bad_zip("`{}` is neither a file nor a folder", name);
  }
  return mode & 07777U;
}

void check_sizes(const ZipMember& member) {
  const bool stored = member.method == ZipMember::Method::stored;
  if (stored ? member.size_bytes != member.compressed_bytes
             : member.size_bytes / kMostInflation > member.compressed_bytes) {
    throw bad_zip("`{}` cannot be {} bytes from {}", member.name, member.size_bytes,
                  member.compressed_bytes);
  }
  if (member.is_folder() && member.size_bytes != 0) {
    throw bad_zip("`{}` is a folder with content", member.name);
  }
}

ZipEntry read_entry(Fields& fields) {
  if (fields.u32() != kCentralSignature) throw bad_zip("its directory is malformed");
  ZipEntry entry;
  const std::uint16_t made_by = fields.u16();
  (void)fields.u16();  // version needed
  entry.flags = fields.u16();
  const std::uint16_t method = fields.u16();
  (void)fields.u32();  // time and date
  entry.member.crc32 = fields.u32();
  Extent extent;
  extent.compressed_bytes = fields.u32();
  extent.size_bytes = fields.u32();
  const std::uint16_t name_length = fields.u16();
  const std::uint16_t extra_length = fields.u16();
  const std::uint16_t comment_length = fields.u16();
  const std::uint16_t disk = fields.u16();
  (void)fields.u16();  // internal attributes
  const std::uint32_t attributes = fields.u32();
  extent.header_offset = fields.u32();
  entry.member.name = as_text(fields.bytes(name_length));
  check_name(entry.member.name);
  widen(extent, fields.bytes(extra_length));
  (void)fields.bytes(comment_length);
  if (disk != 0) throw bad_zip("it spans several disks");
  if ((entry.flags & kFlagEncrypted) != 0) throw bad_zip("`{}` is encrypted", entry.member.name);
  entry.member.method = method_of(method, entry.member.name);
  entry.member.size_bytes = extent.size_bytes;
  entry.member.compressed_bytes = extent.compressed_bytes;
  entry.member.mode = unix_mode(made_by, attributes, entry.member.name);
  entry.header_offset = extent.header_offset;
  check_sizes(entry.member);
  return entry;
}

bool agrees_with_central(std::uint64_t local, std::uint64_t central, bool may_be_absent) {
  return local == central || (may_be_absent && (local == 0 || local == kIn64));
}

/// Reads the local header: sets the data's offset, checks that it says what the directory says.
void locate(const File& file, ZipEntry& entry, Bytes& buffer) {
  ZipMember& member = entry.member;
  buffer.resize(kLocalBytes + member.name.size());
  file.read(entry.header_offset, buffer);
  Fields fields{buffer};
  if (fields.u32() != kLocalSignature) throw bad_zip("`{}` is not where it should be", member.name);
  (void)fields.u16();  // version needed
  const std::uint16_t flags = fields.u16();
  const std::uint16_t method = fields.u16();
  (void)fields.u32();  // time and date
  const std::uint32_t crc = fields.u32();
  Extent extent;
  extent.compressed_bytes = fields.u32();
  extent.size_bytes = fields.u32();
  const std::uint16_t name_length = fields.u16();
  const std::uint16_t extra_length = fields.u16();
  const std::uint64_t extra_offset = entry.header_offset + kLocalBytes + member.name.size();
  member.offset = extra_offset + extra_length;
  if (extent.size_bytes == kIn64 || extent.compressed_bytes == kIn64) {
    widen(extent, file.read(extra_offset, extra_length));
  }
  const bool later = (flags & kFlagDescriptor) != 0;
  const bool same_name =
      name_length == member.name.size() && as_text(fields.bytes(name_length)) == member.name;
  if (!same_name || method_of(method, member.name) != member.method ||
      (flags & kFlagEncrypted) != 0 || ((flags ^ entry.flags) & kFlagDescriptor) != 0 ||
      !agrees_with_central(crc, member.crc32, later) ||
      !agrees_with_central(extent.size_bytes, member.size_bytes, later) ||
      !agrees_with_central(extent.compressed_bytes, member.compressed_bytes, later)) {
    throw bad_zip("`{}` is described in two ways", member.name);
  }
}

/// Reads local headers in file order and checks that members lie one after the other.
void locate_all(const File& file, std::vector<ZipEntry>& entries, std::uint64_t directory_offset) {
  std::sort(entries.begin(), entries.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.header_offset < b.header_offset; });
  std::uint64_t end = 0;
  Bytes buffer;
  for (ZipEntry& entry : entries) {
    if (entry.header_offset < end) throw bad_zip("`{}` overlaps another member", entry.member.name);
    locate(file, entry, buffer);
    if (entry.member.offset > directory_offset ||
        entry.member.compressed_bytes > directory_offset - entry.member.offset) {
      throw bad_zip("`{}` reaches beyond the members' part of the file", entry.member.name);
    }
    end = entry.member.offset + entry.member.compressed_bytes;
  }
}

/// `members` are sorted: no name twice, and none both a file and a folder that holds others.
void check_names(const std::vector<ZipMember>& members) {
  auto less = [](const ZipMember& member, std::string_view name) { return member.name < name; };
  std::string_view last;
  std::string_view last_folder;
  for (const ZipMember& member : members) {
    std::string_view name = member.name;
    if (name == last) throw bad_zip("`{}` is there twice", name);
    last = name;
    std::size_t slash = name.rfind('/');
    if (slash == std::string_view::npos || name.substr(0, slash) == last_folder) continue;
    last_folder = name.substr(0, slash);
    for (; slash != std::string_view::npos; slash = name.rfind('/')) {
      name = name.substr(0, slash);
      const auto found = std::lower_bound(members.begin(), members.end(), name, less);
      if (found != members.end() && found->name == name) {
        throw bad_zip("`{}` is a file and a folder", name);
      }
    }
  }
}

}  // namespace

std::vector<ZipMember> read_zip_directory(int fd) {
  const File file{fd};
  const Directory directory = find_directory(file);
  if (directory.members > kMemberLimit) {
    throw bad_zip("it has {} members, more than {}", directory.members, kMemberLimit);
  }
  if (directory.size_bytes > kDirectoryLimit ||
      directory.members > directory.size_bytes / kCentralBytes) {
    throw bad_zip("its directory cannot have {} bytes for {} members", directory.size_bytes,
                  directory.members);
  }
  const Bytes raw = file.read(directory.offset, directory.size_bytes);
  Fields fields{raw};
  std::vector<ZipEntry> entries;
  entries.reserve(static_cast<std::size_t>(directory.members));
  for (std::uint64_t i = 0; i < directory.members; ++i) entries.push_back(read_entry(fields));
  if (fields.left() != 0) throw bad_zip("its directory has more members than it says");
  locate_all(file, entries, directory.offset);

  std::vector<ZipMember> members;
  members.reserve(entries.size());
  for (ZipEntry& entry : entries) members.push_back(std::move(entry.member));
  std::sort(members.begin(), members.end(),
            [](const ZipMember& a, const ZipMember& b) { return a.name < b.name; });
  check_names(members);
  return members;
}

std::string read_zip_member(int fd, const ZipMember& member, std::uint64_t limit) {
  if (member.size_bytes > limit || member.compressed_bytes > limit + 1024) {
    throw failure("too-large", "`{}` has {} bytes where at most {} are expected", member.name,
                  std::max(member.size_bytes, member.compressed_bytes), limit);
  }
  const File file{fd};
  const Bytes raw = file.read(member.offset, member.compressed_bytes);
  std::string content;
  if (member.method == ZipMember::Method::stored) {
    content = as_text(raw);
  } else {
    content.resize(static_cast<std::size_t>(member.size_bytes));
    while_doing(fmt::format("reading `{}`", member.name),
                [&] { inflate_whole(raw, std::as_writable_bytes(std::span(content))); });
  }
  if (crc32(0, as_bytes(content)) != member.crc32) {
    throw bad_zip("the content of `{}` does not match its CRC-32", member.name);
  }
  return content;
}

}  // namespace mlenv
