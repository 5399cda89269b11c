#include "base/gzip.hpp"

#include <algorithm>
#include <array>

#include "base/deflate/symbols.hpp"
#include "base/inflate.hpp"

namespace mlenv {
namespace {

void append_little_endian(Bytes& out, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

}  // namespace

ByteView gzip_header() {
  static constexpr std::array<std::byte, 10> kHeader{
      std::byte{0x1F}, std::byte{0x8B}, std::byte{8}, {}, {}, {}, {}, {}, {}, std::byte{255}};
  return kHeader;
}

Bytes gzip_trailer(std::uint32_t crc, std::uint64_t size_bytes) {
  Bytes trailer;
  append_little_endian(trailer, crc, 4);
  append_little_endian(trailer, size_bytes, 4);
  return trailer;
}

void append_stored_blocks(Bytes& out, ByteView data) {
  do {
    const std::size_t count = std::min(data.size(), deflate::kStoredLimit);
    out.push_back(std::byte{count == data.size() ? std::uint8_t{1} : std::uint8_t{0}});
    append_little_endian(out, count, 2);
    append_little_endian(out, ~count, 2);
    out.insert(out.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(count));
    data = data.subspan(count);
  } while (!data.empty());
}

Bytes gzip_stored(ByteView data) {
  const std::size_t blocks =
      std::max<std::size_t>(1, (data.size() + deflate::kStoredLimit - 1) / deflate::kStoredLimit);
  Bytes member;
  member.reserve(data.size() + 5 * blocks + 18);
  member.assign(gzip_header().begin(), gzip_header().end());
  append_stored_blocks(member, data);
  append_little_endian(member, crc32(0, data), 4);
  append_little_endian(member, data.size(), 4);
  return member;
}

}  // namespace mlenv
