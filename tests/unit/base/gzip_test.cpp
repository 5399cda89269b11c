#include "base/gzip.hpp"

#include <gtest/gtest.h>
#include <algorithm>

#include "base/inflate.hpp"
#include "tests/support/generator.hpp"
#include "tests/support/raw_deflate.hpp"

namespace mlenv {
namespace {

TEST(Gzip, StoredMembersAreReadByZlib) {
  for (const std::size_t size :
       {0UL, 1UL, 512UL, 65534UL, 65535UL, 65536UL, 131070UL, 131071UL, 200000UL}) {
    const std::string text = test::noise(size, size);
    const Bytes member = gzip_stored(as_bytes(text));
    EXPECT_EQ(test::zlib_inflate(as_text(member), 31), text) << size;
    const std::size_t blocks = std::max<std::size_t>(1, (size + 65534) / 65535);
    EXPECT_EQ(member.size(), 10 + 5 * blocks + size + 8) << size;
  }
}

TEST(Gzip, StoredBlocksAloneAreARawStream) {
  const std::string text = test::prose(70'000, 1);
  Bytes raw = {std::byte{0xEE}};
  append_stored_blocks(raw, as_bytes(text));
  EXPECT_EQ(test::zlib_inflate(as_text(raw).substr(1)), text);
}

TEST(Gzip, HeaderAndTrailerMakeAMemberOfAForeignStream) {
  const std::string text = test::prose(100'000, 2);
  std::string member(as_text(gzip_header()));
  member += test::zlib_deflate(text, 9);
  member += as_text(gzip_trailer(crc32(0, as_bytes(text)), text.size()));
  EXPECT_EQ(test::zlib_inflate(member, 31), text);
}

TEST(Gzip, TrailerHoldsTheSizeModulo32Bits) {
  const Bytes trailer = gzip_trailer(0x01020304, (std::uint64_t{1} << 32) + 5);
  EXPECT_EQ(as_text(trailer), std::string_view("\x04\x03\x02\x01\x05\0\0\0", 8));
}

}  // namespace
}  // namespace mlenv
