#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

TEST(Bytes, TextAndBytesAreViewsOfEachOther) {
  const std::string text("a\0\xFF", 3);
  EXPECT_EQ(as_text(as_bytes(text)), text);
  EXPECT_EQ(as_bytes(text).data(), reinterpret_cast<const std::byte*>(text.data()));
}

TEST(Bytes, MemorySourceGivesEverythingOnce) {
  MemorySource source{as_bytes("hello")};
  Bytes buffer(3);
  EXPECT_EQ(source.read(buffer), 3U);
  EXPECT_EQ(source.read(buffer), 2U);
  EXPECT_EQ(source.read(buffer), 0U);
}

TEST(Bytes, CopyCounts) {
  const std::string text(3'000'000, 'x');
  MemorySource source{as_bytes(text)};
  StringSink sink;
  EXPECT_EQ(copy(source, sink), text.size());
  EXPECT_EQ(sink.text, text);
}

TEST(Bytes, ReadAllStopsAtTheLimit) {
  MemorySource enough{as_bytes("12345")};
  EXPECT_EQ(read_all(enough, 5), "12345");
  MemorySource more{as_bytes("123456")};
  try {
    (void)read_all(more, 5);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "too-large");
  }
}

}  // namespace
}  // namespace mlenv
