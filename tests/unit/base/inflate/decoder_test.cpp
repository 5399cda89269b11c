#include "base/inflate/decoder.hpp"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/fuzz/one_deflate.hpp"
#include "tests/support/generator.hpp"
#include "tests/support/raw_deflate.hpp"
#include "tests/support/rounds.hpp"

namespace mlenv {
namespace {

using fuzz::by_us;
using fuzz::by_zlib;
using fuzz::Inflated;
using fuzz::one_deflate;
using test::Generator;
using test::noise;
using test::prose;
using test::records;

constexpr std::size_t kNoLimit = std::size_t{64} << 20;

/// With zlib's choice of symbols, and a flush (an empty stored block) every `flush` bytes.
std::string zlib_deflated(std::string_view text, int level, int strategy, std::size_t flush) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, -15, 9, strategy), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + text.size() / flush * 16 + 64, '\0');
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  for (std::size_t done = 0; done < text.size(); done += flush) {
    stream.avail_in = static_cast<uInt>(std::min(flush, text.size() - done));
    EXPECT_EQ(::deflate(&stream, Z_SYNC_FLUSH), Z_OK);
  }
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::vector<std::string> texts_to_deflate() {
  // More than a window and a part, of every kind.
  std::string far = noise(32'768, 1);
  far += far;  // every match reaches as far as one may
  return {"",
          "a",
          prose(1'500'000, 2),
          records(1'500'000, 3),
          noise(700'000, 4),
          std::string(2'000'000, '\0'),
          far + prose(300'000, 5) + noise(40'000, 6) + far};
}

TEST(Decoder, ReadsWhatZlibWrites) {
  for (const std::string& text : texts_to_deflate()) {
    for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED}) {
      for (const int level : {0, 1, 6, 9}) {
        const std::string raw = zlib_deflated(text, level, strategy, 100'000);
        const auto found = by_us(as_bytes(raw), kNoLimit, 70'000);
        ASSERT_EQ(found.verdict, Inflated::whole) << level << " " << strategy;
        ASSERT_TRUE(found.text == text) << level << " " << strategy;
      }
    }
  }
}

TEST(Decoder, InputMayComeInAnyPieces) {
  const std::string text = prose(60'000, 7) + noise(3000, 8) + records(60'000, 9);
  const std::string raw = zlib_deflated(text, 6, Z_DEFAULT_STRATEGY, 20'000);
  for (const std::size_t step : {1U, 2U, 3U, 31U, 32U, 33U, 1023U, 1024U, 1025U, 5000U}) {
    const auto found = by_us(as_bytes(raw), kNoLimit, step);
    ASSERT_EQ(found.verdict, Inflated::whole) << step;
    ASSERT_TRUE(found.text == text) << step;
  }
}

TEST(Decoder, TellsWhatFollows) {
  const std::string raw = zlib_deflated(prose(5000, 10), 6, Z_DEFAULT_STRATEGY, 5000);
  for (const std::size_t count : {1U, 7U, 8U, 9U, 3000U}) {
    EXPECT_EQ(by_us(as_bytes(raw + std::string(count, '\0')), kNoLimit, 64).verdict,
              Inflated::followed);
  }
}

TEST(Decoder, EveryTruncationIsNoticed) {
  for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FIXED}) {
    const std::string raw = zlib_deflated(prose(2000, 11) + noise(200, 12), 6, strategy, 900);
    for (std::size_t size = 0; size < raw.size(); ++size) {
      const std::string cut = raw.substr(0, size);
      ASSERT_EQ(by_us(as_bytes(cut), kNoLimit, 100).verdict, Inflated::truncated) << size;
      ASSERT_FALSE(one_deflate(as_bytes(cut)));
    }
  }
}

/// Zlib is the judge of what is damaged, byte by byte.
TEST(Decoder, DamagedStreamsAreWhatZlibTakesThemFor) {
  Generator random{13};
  int whole = 0;
  for (int round = 0; round < rounds(1'500, 4'000); ++round) {
    const std::string text = round % 2 == 0 ? prose(300, static_cast<std::uint64_t>(round % 50))
                                            : records(900, static_cast<std::uint64_t>(round % 50));
    std::string raw =
        zlib_deflated(text, round % 3 == 0 ? 1 : 9, round % 5 == 0 ? Z_FIXED : 0, 250);
    for (std::uint64_t flips = random.below(3); flips > 0; --flips) {
      // Codes stand at the beginning.
      const std::uint64_t at =
          random.below(random.below(2) == 0 ? raw.size() : std::min(raw.size(), std::size_t{60}));
      raw[at] = static_cast<char>(raw[at] ^ (1 << random.below(8)));
    }
    ASSERT_NO_THROW(whole += one_deflate(as_bytes(raw)) ? 1 : 0) << round;
  }
  EXPECT_GT(whole, rounds(190, 500));
  EXPECT_LT(whole, rounds(1'310, 3'500));
}

TEST(Decoder, AnyBytesAreWhatZlibTakesThemFor) {
  for (std::uint64_t round = 0; round < rounds<std::uint64_t>(1'500, 4'000); ++round) {
    std::string bytes = noise(200, round);
    // One block of each kind, by turns.
    const auto kind = static_cast<unsigned>(round % 2 | round % 3 << 1U);
    bytes[0] = static_cast<char>((static_cast<unsigned>(bytes[0]) & ~7U) | kind);
    ASSERT_NO_THROW((void)one_deflate(as_bytes(bytes))) << round;
  }
}

/// Ten bits each: type 1, and the end of the block, seven zeros.
TEST(Decoder, ManyEmptyBlocks) {
  std::string raw;
  unsigned held = 0;
  unsigned bits = 0;
  for (int block = 0; block < 100'000; ++block) {
    bits |= (block == 99'999 ? 3U : 2U) << held;
    for (held += 10; held >= 8; held -= 8) {
      raw += static_cast<char>(bits & 0xFFU);
      bits >>= 8U;
    }
  }
  EXPECT_EQ(held, 0U);
  EXPECT_TRUE(one_deflate(as_bytes(raw)));
  EXPECT_FALSE(one_deflate(as_bytes(raw.substr(0, raw.size() - 1))));
}

/// Fibonacci numbers as frequencies give the longest codewords.
TEST(Decoder, LongestCodewords) {
  std::string text;
  std::size_t one = 1;
  std::size_t two = 1;
  for (char symbol = 'a'; symbol < 'a' + 24; ++symbol) {
    text.append(one, symbol);
    two = std::exchange(one, one + two);
  }
  Generator random{14};
  for (std::size_t i = text.size(); i > 1; --i) std::swap(text[i - 1], text[random.below(i)]);
  for (const int strategy : {Z_HUFFMAN_ONLY, Z_DEFAULT_STRATEGY}) {
    const std::string raw = zlib_deflated(text, 9, strategy, text.size());
    EXPECT_TRUE(by_us(as_bytes(raw), kNoLimit, 4096).text == text);
  }
}

}  // namespace
}  // namespace mlenv
