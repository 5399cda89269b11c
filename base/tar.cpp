#include "base/tar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/error.hpp"

namespace mlenv {
namespace {

// ustar, POSIX.1-2001 pax(1): field offsets and lengths.
struct Field {
  std::size_t offset;
  std::size_t length;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kUid{108, 8};
constexpr Field kGid{116, 8};
constexpr Field kSize{124, 12};
constexpr Field kMtime{136, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kTypeOffset = 156;
constexpr Field kLink{157, 100};
constexpr Field kMagic{257, 8};
constexpr Field kDeviceMajor{329, 8};
constexpr Field kDeviceMinor{337, 8};
constexpr Field kNamePrefix{345, 155};

constexpr std::string_view kPaxName = "././@PaxHeader";
constexpr char kPaxType = 'x';

using PaxRecords = std::map<std::string, std::string>;

Error cannot_say(const TarEntry& entry, std::string cause) {
  return Error{Kind::failed, "bad-tar", fmt::format("`{}` cannot be put into a tar", entry.path)}
      .because(std::move(cause));
}

/// One header block.
class Block {
 public:
  void text(Field field, std::string_view value) {
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(field.offset);
    const std::string_view kept = value.substr(0, field.length);
    std::transform(kept.begin(), kept.end(), begin,
                   [](char c) { return static_cast<std::byte>(c); });
  }
  /// Octal digits, zero-filled, NUL at the end.
  void number(Field field, std::uint64_t value) {
    for (std::size_t i = field.length - 1; i-- > 0; value >>= 3U) {
      bytes_[field.offset + i] = static_cast<std::byte>('0' + (value & 7U));
    }
  }
  static bool fits(Field field, std::uint64_t value) {
    return value >> (3 * (field.length - 1)) == 0;
  }
  void type(char value) { bytes_[kTypeOffset] = static_cast<std::byte>(value); }
  /// Sets magic and checksum (six digits, NUL, space), then appends the block.
  void append_to(Bytes& out) {
    using namespace std::string_view_literals;
    text(kMagic, "ustar\00000"sv);
    text(kChecksum, "        ");
    std::uint64_t sum = 0;
    for (const std::byte byte : bytes_) sum += std::to_integer<std::uint64_t>(byte);
    number({kChecksum.offset, 7}, sum);
    bytes_[kChecksum.offset + 6] = std::byte{0};
    out.insert(out.end(), bytes_.begin(), bytes_.end());
  }

 private:
  std::array<std::byte, kTarBlock> bytes_{};
};

/// `length key=value\n`, where length counts itself.
std::string pax_record(const std::string& key, const std::string& value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t total = rest + 1;
  while (rest + std::to_string(total).size() != total) ++total;
  std::string record;
  record.reserve(total);
  record.append(std::to_string(total)).append(" ").append(key);
  record.append("=").append(value).append("\n");
  return record;
}

void append_pax(Bytes& out, const PaxRecords& records) {
  std::string body;
  for (const auto& [key, value] : records) body += pax_record(key, value);
  Block block;
  block.text(kName, kPaxName);
  block.number(kMode, 0644);
  block.number(kUid, 0);
  block.number(kGid, 0);
  block.number(kSize, body.size());
  block.number(kMtime, 0);
  block.type(kPaxType);
  block.number(kDeviceMajor, 0);
  block.number(kDeviceMinor, 0);
  block.append_to(out);
  const ByteView bytes = as_bytes(body);
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.resize(out.size() + tar_padding(body.size()));
}

char type_flag(TarEntry::Type type) {
  switch (type) {
    case TarEntry::Type::file:
      return '0';
    case TarEntry::Type::hardlink:
      return '1';
    case TarEntry::Type::symlink:
      return '2';
    case TarEntry::Type::char_device:
      return '3';
    case TarEntry::Type::block_device:
      return '4';
    case TarEntry::Type::folder:
      return '5';
    case TarEntry::Type::fifo:
      return '6';
  }
  throw Error{Kind::internal, "bad-tar", "a tar entry has no known type"};
}

/// The name in the name field, or split at the last slash that leaves a prefix of at most 155
/// bytes, or in a pax record with its first 100 bytes in the field.
void put_path(Block& block, PaxRecords& pax, const std::string& path) {
  block.text(kName, path);
  if (path.size() <= kName.length) return;
  const std::size_t last = std::min(kNamePrefix.length, path.size() - 2);
  const std::size_t slash = path.rfind('/', last);
  if (slash != std::string::npos && slash > 0 && path.size() - slash - 1 <= kName.length) {
    block.text(kName, std::string(kName.length, '\0'));
    block.text(kName, std::string_view(path).substr(slash + 1));
    block.text(kNamePrefix, std::string_view(path).substr(0, slash));
    return;
  }
  pax["path"] = path;
}

void put_number(Block& block, PaxRecords& pax, Field field,
                std::pair<std::string_view, std::uint64_t> named) {
  const auto [name, value] = named;
  if (Block::fits(field, value)) {
    block.number(field, value);
  } else {
    block.number(field, 0);
    pax[std::string(name)] = std::to_string(value);
  }
}

void put_time(Block& block, PaxRecords& pax, std::int64_t mtime) {
  const auto positive = static_cast<std::uint64_t>(std::max<std::int64_t>(mtime, 0));
  put_number(block, pax, kMtime, {"mtime", positive});
  if (mtime < 0) pax["mtime"] = std::to_string(mtime);
}

void check_text(const TarEntry& entry) {
  const bool has_nul =
      entry.path.find('\0') != std::string::npos || entry.link.find('\0') != std::string::npos;
  if (entry.path.empty() || has_nul)
    throw cannot_say(entry, "its name is empty or holds a NUL byte");
  if (!Block::fits(kDeviceMajor, entry.device_major) ||
      !Block::fits(kDeviceMinor, entry.device_minor)) {
    throw cannot_say(entry, "its device number is too large");
  }
  for (const auto& [name, value] : entry.xattrs) {
    if (name.empty() || name.find('=') != std::string::npos) {
      throw cannot_say(entry, fmt::format("its attribute `{}` has an impossible name", name));
    }
  }
}

}  // namespace

Bytes tar_header(const TarEntry& entry) {
  check_text(entry);
  const bool links =
      entry.type == TarEntry::Type::symlink || entry.type == TarEntry::Type::hardlink;
  const bool file = entry.type == TarEntry::Type::file;
  PaxRecords pax;
  Block block;
  put_path(block, pax, entry.type == TarEntry::Type::folder ? entry.path + "/" : entry.path);
  block.number(kMode, entry.mode & 07777U);
  put_number(block, pax, kUid, {"uid", entry.uid});
  put_number(block, pax, kGid, {"gid", entry.gid});
  put_number(block, pax, kSize, {"size", file ? entry.size_bytes : 0});
  put_time(block, pax, entry.mtime);
  block.type(type_flag(entry.type));
  if (links) {
    block.text(kLink, entry.link);
    if (entry.link.size() > kLink.length) pax["linkpath"] = entry.link;
  }
  block.number(kDeviceMajor, entry.device_major);
  block.number(kDeviceMinor, entry.device_minor);
  for (const auto& [name, value] : entry.xattrs) pax["SCHILY.xattr." + name] = value;
  Bytes header;
  if (!pax.empty()) append_pax(header, pax);
  block.append_to(header);
  return header;
}

ByteView tar_end() {
  static constexpr std::array<std::byte, 2 * kTarBlock> kZeros{};
  return kZeros;
}

}  // namespace mlenv
