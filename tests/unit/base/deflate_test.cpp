#include "base/deflate.hpp"

#include <gtest/gtest.h>

#include "base/deflate/code.hpp"
#include "base/deflate/symbols.hpp"
#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/pool.hpp"
#include "tests/support/generator.hpp"
#include "tests/support/raw_deflate.hpp"

namespace mlenv {
namespace {

using test::noise;
using test::prose;
using test::records;
using test::zlib_inflate;

std::string deflated(std::string_view text) {
  return std::string(as_text(deflate_chunk(as_bytes(text))));
}

struct Golden {
  const char* name;
  std::string input;
  std::size_t size_bytes;
  const char* digest;
};

std::string two_letters(std::size_t size_bytes) {
  test::Generator generator{7};
  std::string text;
  while (text.size() < size_bytes) text += generator.below(9) == 0 ? 'b' : 'a';
  return text;
}

/// The i-th letter occurs as often as the i-th Fibonacci number: the deepest Huffman trees.
std::string fibonacci_letters() {
  std::string text;
  std::size_t count = 1;
  std::size_t next = 1;
  for (char letter = 'A'; letter < 'A' + 22; ++letter) {
    text.append(count, letter);
    next = std::exchange(count, next) + count;
  }
  test::Generator generator{20};
  for (std::size_t i = text.size(); i > 1; --i) std::swap(text[i - 1], text[generator.below(i)]);
  return text;
}

std::vector<Golden> goldens();

TEST(Deflate, GoldenBytesStayTheSame) {
  for (const Golden& golden : goldens()) {
    const std::string out = deflated(golden.input);
    EXPECT_EQ(out.size(), golden.size_bytes) << golden.name;
    EXPECT_EQ(Digest::of(out).hex(), golden.digest) << golden.name;
    EXPECT_EQ(zlib_inflate(out), golden.input) << golden.name;
  }
}

TEST(Deflate, EmptyInputIsOneFixedBlock) { EXPECT_EQ(deflated(""), std::string("\x03\x00", 2)); }

TEST(Deflate, EveryShortLengthRoundTrips) {
  for (std::size_t size = 1; size < 300; ++size) {
    for (const std::string& input :
         {prose(size, size), noise(size, size), std::string(size, 'z')}) {
      ASSERT_EQ(zlib_inflate(deflated(input)), input) << size;
    }
  }
}

TEST(Deflate, CopiesFromTheWindowEdgeRoundTrip) {
  const std::string mark = noise(300, 1);
  for (const std::size_t gap :
       {32767UL - 300, 32768UL - 300, 32769UL - 300, 65536UL - 300, 131072UL - 300}) {
    std::string input = mark;
    input.append(noise(gap, gap)).append(mark);
    const std::string out = deflated(input);
    ASSERT_EQ(zlib_inflate(out), input) << gap;
    // Within 32 KiB the second mark is copied, beyond it cannot be.
    EXPECT_EQ(out.size() < input.size() - 200, gap + 300 <= 32768) << gap;
  }
}

TEST(Deflate, DoesNotDependOnWhatTheThreadDidBefore) {
  const std::string input = records(200000, 3);
  const std::string first = deflated(input);
  (void)deflated(noise(kChunkBytes, 4));
  (void)deflated(std::string(5000, 'x'));
  EXPECT_EQ(deflated(input), first);
  Pool pool{4};
  std::vector<std::string> results(16);
  pool.for_each(results.size(), [&](std::size_t i) {
    if (i % 3 == 0) (void)deflated(prose(70000, i));
    results[i] = deflated(input);
  });
  for (const std::string& result : results) EXPECT_EQ(result, first);
}

TEST(Deflate, CompressesAboutAsWellAsZlibLevel6) {
  for (const std::string& input : {prose(kChunkBytes, 5), records(kChunkBytes, 6)}) {
    EXPECT_LT(static_cast<double>(deflated(input).size()),
              1.02 * static_cast<double>(test::zlib_deflate(input, 6).size()));
  }
}

TEST(Deflate, NoiseGrowsByStoredHeadersOnly) {
  EXPECT_LE(deflated(noise(kChunkBytes, 8)).size(), kChunkBytes + kChunkBytes / 1000);
}

TEST(Deflate, LargerThanAChunkIsABug) {
  try {
    (void)deflate_chunk(Bytes(kChunkBytes + 1));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::internal);
    EXPECT_EQ(error.code(), "deflate");
  }
}

TEST(Deflate, GzipMemberIsReadByZlib) {
  const std::string input = prose(300000, 9);
  const Bytes member = gzip_chunk(as_bytes(input));
  EXPECT_EQ(zlib_inflate(as_text(member), 31), input);
  EXPECT_EQ(gzip_chunk_unread(as_bytes(input)), member);
  EXPECT_EQ(as_text(member).substr(0, 10), std::string_view("\x1F\x8B\x08\0\0\0\0\0\0\xFF", 10));
}

TEST(HuffmanCode, IsCompleteAndWithinTheLimit) {
  test::Generator generator{10};
  for (int round = 0; round < 300; ++round) {
    const unsigned limit = round % 2 == 0 ? 15 : 7;
    const std::size_t symbols = limit == 7 ? 19 : 286;
    std::vector<std::uint32_t> frequencies(symbols);
    const std::uint64_t used = 2 + generator.below(symbols - 1);
    for (std::uint64_t i = 0; i < used; ++i) {
      frequencies[i] = static_cast<std::uint32_t>(1ULL << generator.below(18));
    }
    std::vector<std::uint8_t> lengths(symbols);
    deflate::code_lengths(frequencies, limit, lengths);
    std::uint64_t kraft = 0;
    for (std::size_t i = 0; i < symbols; ++i) {
      ASSERT_EQ(lengths[i] > 0, frequencies[i] > 0);
      ASSERT_LE(lengths[i], limit);
      if (lengths[i] > 0) kraft += 1ULL << (limit - lengths[i]);
      for (std::size_t j = 0; j < i; ++j) {
        const bool rarer = frequencies[j] > 0 && frequencies[j] < frequencies[i];
        ASSERT_TRUE(!rarer || lengths[i] <= lengths[j]);
      }
    }
    ASSERT_EQ(kraft, 1ULL << limit);
  }
}

TEST(DeflateSymbols, SlotsCoverEveryLengthAndDistance) {
  for (std::size_t length = 3; length <= 258; ++length) {
    const deflate::Slot slot = deflate::kLengthSlots[deflate::length_slot(length)];
    ASSERT_GE(length, slot.base);
    ASSERT_LT(length - slot.base, 1U << slot.extra_bits) << length;
  }
  EXPECT_EQ(deflate::length_slot(258), 28U);
  for (std::size_t distance = 1; distance <= 32768; ++distance) {
    const deflate::Slot slot = deflate::kDistanceSlots[deflate::distance_slot(distance)];
    ASSERT_GE(distance, slot.base);
    ASSERT_LT(distance - slot.base, 1U << slot.extra_bits) << distance;
  }
}

/// Part of the layer-format version: a change here changes every image.
std::vector<Golden> goldens() {
  return {
      {"empty", "", 2, "9b4fb24edd6d1d8830e272398263cdbf026b97392cc35387b991dc0248a628f9"},
      {"one byte", "x", 3, "f5b976feaac71fd875e2850ce8a0f229ad2fe83beab9d1284fe2a75f1e172a56"},
      {"zeros", std::string(kChunkBytes, '\0'), 1033,
       "aa75002f559814b774c053c8acc2681946774ee802d071460298d3960ed745f7"},
      {"noise", noise(kChunkBytes, 11), 1048761,
       "3dff604230e962d42a92598ad6361cd3539961bf212357bf8d1816442a7ac850"},
      {"short noise", noise(70000, 12), 70015,
       "aa1cdfcbb7a931a7400463407fa69cf99cd759f912fa0aa5d6764dea9ec30306"},
      {"prose", prose(kChunkBytes, 13), 367893,
       "6cf0ea3795cd79b95840ce9c10a3293939f760b94d4669bb8808f868831fa3cf"},
      {"short prose", prose(1000, 14), 583,
       "9a56e0543a0c37913e23be0407d27ade26bfa3848f51d2d1e5b8aa6807dede3b"},
      {"records", records(kChunkBytes, 15), 62186,
       "e4a64ec3cdc395e60dc7346eec00834409ecebd9aebac3629e3b480bb8ba4209"},
      {"mixed", prose(100000, 16) + noise(100000, 17) + records(100000, 18), 144256,
       "78fa215215df5508a18f236fa599f7732d8e2cc8ba05c2ae3d06c79687f2e40d"},
      {"two letters", two_letters(200000), 22134,
       "faa7584cd784cc060ec07e7ade043907cd5c6822248685c2ce1f0ebd2b92aa88"},
      {"fibonacci", fibonacci_letters(), 18677,
       "4d7fff035f1e1c96941e08cf7931789d858f2ba67779212b985e7e1063c95390"},
      {"repeat",
       [] {
         const std::string line = prose(40000, 19);
         return line + line + line;
       }(),
       43712, "82e05158059e98640cd870a24b655a7fbba74065205c5a2dba2c23be84ec32fe"},
  };
}

}  // namespace
}  // namespace mlenv
