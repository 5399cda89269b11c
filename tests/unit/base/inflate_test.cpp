#include "base/inflate.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "tests/support/child.hpp"
#include "tests/support/generator.hpp"
#include "tests/support/raw_deflate.hpp"

namespace mlenv {
namespace {

using test::noise;
using test::prose;
using test::records;
using test::zlib_deflate;

/// Gives at most `step` bytes at a time.
class DripSource final : public Source {
 public:
  DripSource(std::string_view text, std::size_t step) : source_(as_bytes(text)), step_(step) {}
  std::size_t read(ByteSpan out) override {
    return source_.read(out.first(std::min(out.size(), step_)));
  }

 private:
  MemorySource source_;
  std::size_t step_;
};

template <typename Work>
std::string inflate_code(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code();
  }
  return "none";
}

std::string whole_inflated(std::string_view raw, std::size_t size) {
  std::string out(size, '\0');
  inflate_whole(as_bytes(raw), std::as_writable_bytes(std::span(out)));
  return out;
}

std::string streamed(std::string_view raw, std::uint64_t size, std::size_t step = 1U << 20U) {
  DripSource source{raw, step};
  StringSink sink;
  inflate_stream(source, sink, size);
  return sink.text;
}

std::string gunzipped(std::string_view data, std::size_t step = 1U << 20U) {
  DripSource source{data, step};
  StringSink sink;
  gunzip(source, sink);
  return sink.text;
}

std::string decompressed(std::string_view data, std::size_t step = 1U << 20U) {
  DripSource source{data, step};
  StringSink sink;
  decompress(source, sink);
  return sink.text;
}

std::vector<std::string> samples() {
  return {"",
          "a",
          prose(1000, 1),
          prose(700'000, 2),
          records(400'000, 3),
          noise(300'000, 4),
          std::string(1'000'000, '\0')};
}

TEST(Inflate, AgreesWithZlib) {
  for (const std::string& text : samples()) {
    for (const int level : {0, 1, 6, 9}) {
      const std::string raw = zlib_deflate(text, level);
      EXPECT_EQ(whole_inflated(raw, text.size()), text);
      EXPECT_EQ(streamed(raw, text.size()), text);
      EXPECT_EQ(gunzipped(zlib_deflate(text, level, 31)), text);
    }
  }
}

TEST(Inflate, InputMayComeInAnyPieces) {
  const std::string text = prose(30'000, 5) + noise(2000, 6);
  const std::string raw = zlib_deflate(text, 6);
  const std::string file = zlib_deflate(text, 6, 31);
  const std::string many = file + file + zlib_deflate("", 6, 31) + file;
  const std::string thrice = text + text + text;
  for (const std::size_t step : {1UL, 2UL, 3UL, 7UL, 8UL, 9UL, 1000UL}) {
    EXPECT_EQ(streamed(raw, text.size(), step), text) << step;
    EXPECT_EQ(gunzipped(many, step), thrice) << step;
    EXPECT_EQ(decompressed(many, step), thrice) << step;
  }
}

TEST(Inflate, RefusesWhatIsNotExactlyTheStream) {
  const std::string text = prose(300'000, 7);
  const std::string raw = zlib_deflate(text, 6);
  const std::string longer = raw + "x";
  const std::string_view shorter = std::string_view(raw).substr(0, raw.size() - 1);
  for (const std::uint64_t size : {text.size() - 1, text.size() + 1, std::size_t{0}}) {
    EXPECT_EQ(inflate_code([&] { (void)whole_inflated(raw, size); }), "bad-deflate");
    EXPECT_EQ(inflate_code([&] { (void)streamed(raw, size); }), "bad-deflate");
  }
  for (const std::string_view broken : {std::string_view(longer), shorter, std::string_view{}}) {
    EXPECT_EQ(inflate_code([&] { (void)whole_inflated(broken, text.size()); }), "bad-deflate");
    for (const std::size_t step : {1UL, 1UL << 20U}) {
      EXPECT_EQ(inflate_code([&] { (void)streamed(broken, text.size(), step); }), "bad-deflate");
    }
  }
}

TEST(Inflate, EveryTruncationIsNoticed) {
  const std::string text = prose(3000, 8);
  const std::string raw = zlib_deflate(text, 6);
  const std::string file = zlib_deflate(text, 6, 31);
  for (std::size_t size = 0; size < raw.size(); ++size) {
    const std::string_view part = std::string_view(raw).substr(0, size);
    ASSERT_EQ(inflate_code([&] { (void)whole_inflated(part, text.size()); }), "bad-deflate")
        << size;
    ASSERT_EQ(inflate_code([&] { (void)streamed(part, text.size()); }), "bad-deflate") << size;
  }
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string_view part = std::string_view(file).substr(0, size);
    ASSERT_EQ(inflate_code([&] { (void)gunzipped(part); }), "bad-gzip") << size;
  }
}

TEST(Inflate, FlippedBitsNeverPassGunzip) {
  const std::string text = prose(2000, 9);
  const std::string file = zlib_deflate(text, 6, 31);
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string broken = file;
    broken[i] = static_cast<char>(broken[i] ^ 0x10);
    // Time, extra flags, and system in the header say nothing about the content.
    if (i >= 4 && i < 10) continue;
    std::string out;
    const std::string code = inflate_code([&] { out = gunzipped(broken); });
    ASSERT_TRUE(code == "bad-gzip" || out == text) << i;
    ASSERT_EQ(code, "bad-gzip") << i;
  }
}

TEST(Inflate, MembersAreReadOneByOne) {
  const std::vector<std::string> texts{prose(3000, 10), "", noise(500, 11)};
  std::string file;
  for (const std::string& text : texts) file += zlib_deflate(text, 6, 31);
  ByteView rest = as_bytes(file);
  Bytes out(3000);
  for (const std::string& text : texts) {
    const InflatedPart part = gunzip_member(rest, out);
    EXPECT_EQ(as_text(ByteView(out).first(part.written)), text);
    rest = rest.subspan(part.used);
  }
  EXPECT_TRUE(rest.empty());
  out.resize(2999);
  EXPECT_EQ(inflate_code([&] { (void)gunzip_member(as_bytes(file), out); }), "bad-gzip");
}

TEST(Inflate, ADamagedMemberIsNotRead) {
  const std::string text = prose(2000, 12);
  const std::string file = zlib_deflate(text, 6, 31);
  Bytes out(text.size());
  for (std::size_t i = 0; i < file.size(); ++i) {
    ASSERT_EQ(inflate_code([&] { (void)gunzip_member(as_bytes(file.substr(0, i)), out); }),
              "bad-gzip");
    if (i >= 4 && i < 10) continue;  // time, extra flags and system say nothing about the content
    std::string broken = file;
    broken[i] = static_cast<char>(broken[i] ^ 0x10);
    ASSERT_EQ(inflate_code([&] { (void)gunzip_member(as_bytes(broken), out); }), "bad-gzip") << i;
  }
}

TEST(Inflate, GunzipReadsOptionalHeaderFields) {
  const std::string text = "hello";
  const std::string plain = zlib_deflate(text, 6, 31);
  using namespace std::string_literals;
  const std::string header =
      "\x1F\x8B\x08\x1E\0\0\0\0\0\x03"s + "\x03\0abc"s + "name\0"s + "comment\0"s + "\x12\x34"s;
  EXPECT_EQ(gunzipped(header + plain.substr(10)), text);
  EXPECT_EQ(gunzipped(header + plain.substr(10), 1), text);
  std::string reserved = plain;
  reserved[3] = '\x80';
  EXPECT_EQ(inflate_code([&] { (void)gunzipped(reserved); }), "bad-gzip");
  EXPECT_EQ(inflate_code([&] { (void)gunzipped(plain + "junk"); }), "bad-gzip");
}

TEST(Inflate, GunzipReadsSplicedMembersOfAllSizes) {
  std::string file;
  std::string text;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const std::string small = prose(i % 7 * 100, i);
    const std::string large = records(i % 50 == 0 ? 300'000 : 4000, i);
    file += as_text(gzip_stored(as_bytes(small)));
    file += zlib_deflate(large, 6, 31);
    text += small + large;
  }
  EXPECT_EQ(gunzipped(file), text);
}

TEST(Inflate, Crc32IsThatOfZlib) {
  const std::string text = noise(100'000, 10);
  const auto* bytes = reinterpret_cast<const Bytef*>(text.data());
  EXPECT_EQ(crc32(0, as_bytes(text)), ::crc32(0, bytes, static_cast<uInt>(text.size())));
  EXPECT_EQ(crc32(0, {}), 0U);
  const std::uint32_t first = crc32(0, as_bytes(text).first(333));
  EXPECT_EQ(crc32(first, as_bytes(text).subspan(333)), crc32(0, as_bytes(text)));
}

TEST(Decompress, ZstdFramesThatEndWithABuffer) {
  // The buffer of base/decompress.cpp holds 256 KiB: a frame may end exactly where it does.
  constexpr std::size_t kBuffer = 256U << 10U;
  for (const std::size_t size : {kBuffer - 1, kBuffer, kBuffer + 1, 2 * kBuffer, 3 * kBuffer}) {
    const std::string text = test::prose(size, 4);
    std::string frame(ZSTD_compressBound(text.size()), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 1));
    EXPECT_TRUE(decompressed(frame) == text) << size;
    EXPECT_TRUE(decompressed(frame + frame) == text + text) << size;
    EXPECT_EQ(inflate_code([&] { (void)decompressed(frame.substr(0, frame.size() - 1)); }),
              "bad-zstd");
  }
}

TEST(Decompress, TellsByMagicNumber) {
  using namespace std::string_literals;
  EXPECT_EQ(decompressed(""), "");
  EXPECT_EQ(decompressed("plain"), "plain");
  EXPECT_EQ(decompressed(noise(100, 11), 3), noise(100, 11));
  // RFC 8878: single segment, content size 5, one raw block; before it, a skippable frame.
  const std::string zstd = "\x28\xB5\x2F\xFD\x20\x05\x29\0\0hello"s;
  EXPECT_EQ(decompressed(zstd), "hello");
  EXPECT_EQ(decompressed(zstd + zstd, 1), "hellohello");
  EXPECT_EQ(decompressed("\x50\x2A\x4D\x18\x02\0\0\0ab"s + zstd), "hello");
  EXPECT_EQ(inflate_code([&] { (void)decompressed(zstd.substr(0, 10)); }), "bad-zstd");
  EXPECT_EQ(inflate_code([&] { (void)decompressed(zstd.substr(0, 5) + "\x06\x29\0\0hello!"s); }),
            "bad-zstd");
}

TEST(Decompress, ReadsXzOfPython) {
  const std::string text = prose(500'000, 12);
  const std::string xz = test::python(
      "import lzma, sys; d = sys.stdin.buffer.read();"
      "sys.stdout.buffer.write(lzma.compress(d[:9], preset=1) + lzma.compress(d[9:], preset=1))",
      text);
  EXPECT_EQ(decompressed(xz), text);
  EXPECT_EQ(decompressed(xz, 1000), text);
  EXPECT_EQ(inflate_code([&] { (void)decompressed(xz.substr(0, xz.size() / 2)); }), "bad-xz");
}

TEST(Decompress, EveryTruncationOfXzIsNoticed) {
  const std::string xz = test::python(
      "import lzma, sys; sys.stdout.buffer.write(lzma.compress(sys.stdin.buffer.read()))", "hello");
  EXPECT_EQ(decompressed(xz), "hello");
  for (std::size_t size = 6; size < xz.size(); ++size) {
    ASSERT_EQ(inflate_code([&] { (void)decompressed(xz.substr(0, size)); }), "bad-xz") << size;
  }
  const std::string empty =
      test::python("import lzma, sys; sys.stdout.buffer.write(lzma.compress(b''))");
  EXPECT_EQ(decompressed(empty), "");
}

class FailingSource final : public Source {
 public:
  explicit FailingSource(std::string_view head) : head_(as_bytes(head)) {}
  std::size_t read(ByteSpan out) override {
    const std::size_t count = head_.read(out);
    if (count == 0) throw failure("network", "the line went dead");
    return count;
  }

 private:
  MemorySource head_;
};

TEST(Decompress, ErrorsOfTheInputPassThrough) {
  using namespace std::string_literals;
  for (const std::string& head : {"\xFD"
                                  "7zXZ\0"s,
                                  "\x1F\x8B\x08"s, "\x28\xB5\x2F\xFD"s, "plain"s}) {
    FailingSource source{head};
    StringSink sink;
    EXPECT_EQ(inflate_code([&] { decompress(source, sink); }), "network");
  }
}

}  // namespace
}  // namespace mlenv
