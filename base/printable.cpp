#include "base/printable.hpp"

#include <fmt/format.h>
#include <cstdint>

#include <array>

namespace mlenv {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool is_valid = false;
};

/// The first character of `text`, which is not empty (RFC 3629: no surrogates, no longer form than
/// needed).
Character first_of(std::string_view text) {
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 0;
  if (bytes == 0 || lead > 0xF7 || bytes > text.size()) return {lead, 1, false};
  char32_t code = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80) return {lead, 1, false};
    code = (code << 6U) | (next & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast.at(bytes) || code > 0x10FFFF || surrogate) return {lead, 1, false};
  return {code, bytes, true};
}

bool is_harmful(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x61C || code == 0x200E ||
         code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string as_text(const Character& character) {
  if (character.code == '\n') return "\\n";
  if (character.code == '\t') return "\\t";
  const auto code = static_cast<std::uint32_t>(character.code);
  if (!character.is_valid || code < 0x80) return fmt::format("\\x{:02x}", code);
  return fmt::format("\\u{{{:x}}}", code);
}

std::string as_json(const Character& character) {
  return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(character.code));
}

std::string escaped(std::string_view text, std::string_view kept,
                    std::string (*escape)(const Character&)) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    const bool is_kept = kept.find(text.front()) != std::string_view::npos;
    if (!is_kept && (!character.is_valid || is_harmful(character.code))) {
      out += escape(character);
    } else {
      out += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, {}, as_text); }

std::string printable_lines(std::string_view text) { return escaped(text, "\n\t", as_text); }

std::string printable_json(std::string_view json) { return escaped(json, "\n\t", as_json); }

}  // namespace mlenv
