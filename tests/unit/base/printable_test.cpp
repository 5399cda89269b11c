#include "base/printable.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.hpp"

namespace mlenv {
namespace {

using namespace std::string_literals;

TEST(Printable, PlainTextStays) {
  for (const std::string text : {"", "torch 2.9 → 2.10", "naïve/Ünïcode 中文 🚀", "a\\b `c`"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_lines(text), text);
  }
}

TEST(Printable, NothingMovesTheCursor) {
  EXPECT_EQ(printable("\x1b[2J\x07\x7f"), "\\x1b[2J\\x07\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u{9b}31m");
  EXPECT_EQ(printable("a\rb\nc\td\0e"s), "a\\x0db\\nc\\td\\x00e");
  EXPECT_EQ(printable_lines("a\rb\nc\td"), "a\\x0db\nc\td");
}

TEST(Printable, NothingReadsBackwards) {
  EXPECT_EQ(printable("a\u202e"
                      "cod.exe\u2066\u200f\u2028"),
            "a\\u{202e}cod.exe\\u{2066}\\u{200f}\\u{2028}");
}

TEST(Printable, BytesThatAreNoUtf8AreShown) {
  EXPECT_EQ(printable("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // longer than needed
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xff\xf0\x9f\x9a"), "\\xff\\xf0\\x9f\\x9a");
  EXPECT_EQ(printable("\x9b"), "\\x9b");  // CSI of terminals that read Latin-1
}

TEST(Printable, JsonKeepsItsValue) {
  const nlohmann::json value = {{"a\x1b", "\xc2\x9b\u202e\x7f\n"}, {"b", "plain →"}};
  const std::string text = printable_json(canonical(value));
  EXPECT_EQ(text, "{\"a\\u001b\":\"\\u009b\\u202e\\u007f\\n\",\"b\":\"plain →\"}");
  EXPECT_EQ(nlohmann::json::parse(text), value);
}

}  // namespace
}  // namespace mlenv
