#include "base/utf8.hpp"

#include <algorithm>

namespace mlenv {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

}  // namespace

std::size_t utf8_sequence(std::string_view text, std::size_t at) {
  const unsigned first = byte_at(text, at);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  if (first >= 0xC2 && first <= 0xDF) length = 2;
  if (first >= 0xE0 && first <= 0xEF) length = 3;
  if (first >= 0xF0 && first <= 0xF4) length = 4;
  if (length == 0 || text.size() - at < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, at + i) & 0xC0U) != 0x80) return 0;
  }
  const unsigned second = byte_at(text, at + 1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second > 0x9F;
  const bool too_large = first == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

std::size_t utf8_fault(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::size_t utf8_length(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned>(c) & 0xC0U) != 0x80; }));
}

namespace {

void append_character(std::string& out, char32_t one) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (one < 0x80) return put(one);
  if (one < 0x800) {
    put(0xC0U | one >> 6U);
  } else {
    if (one < 0x10000) {
      put(0xE0U | one >> 12U);
    } else {
      put(0xF0U | one >> 18U);
      put(0x80U | (one >> 12U & 0x3FU));
    }
    put(0x80U | (one >> 6U & 0x3FU));
  }
  put(0x80U | (one & 0x3FU));
}

}  // namespace

std::string decoded_text(std::string bytes) {
  if (bytes.starts_with("\xEF\xBB\xBF")) return bytes.substr(3);
  const bool little = bytes.starts_with("\xFF\xFE");
  if ((!little && !bytes.starts_with("\xFE\xFF")) || bytes.size() % 2 != 0) return bytes;
  const auto unit = [&](std::size_t at) -> char32_t {
    return little ? byte_at(bytes, at) | byte_at(bytes, at + 1) << 8U
                  : byte_at(bytes, at) << 8U | byte_at(bytes, at + 1);
  };
  std::string text;
  for (std::size_t at = 2; at < bytes.size(); at += 2) {
    char32_t one = unit(at);
    if (one >= 0xD800 && one < 0xDC00 && at + 3 < bytes.size() && unit(at + 2) >> 10U == 0x37) {
      one = 0x10000 + ((one & 0x3FFU) << 10U | (unit(at + 2) & 0x3FFU));
      at += 2;
    }
    if (one >= 0xD800 && one < 0xE000) return bytes;  // half a pair
    append_character(text, one);
  }
  return text;
}

std::optional<char32_t> take_character(std::string_view text, std::size_t& at) {
  const std::size_t length = utf8_sequence(text, at);
  const unsigned first = byte_at(text, at++);
  if (length == 0) return std::nullopt;
  char32_t one = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) one = (one << 6U) | (byte_at(text, at++) & 0x3FU);
  return one;
}

}  // namespace mlenv
