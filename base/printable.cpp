#include "base/printable.hpp"

#include <fmt/format.h>
#include <cstdint>

#include "base/utf8.hpp"

namespace mlenv {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool is_valid = false;
};

/// The first character of `text`, which is not empty.
Character first_of(std::string_view text) {
  std::size_t bytes = 0;
  if (const auto code = take_character(text, bytes)) return {*code, bytes, true};
  return {static_cast<unsigned char>(text.front()), 1, false};
}

bool is_harmful(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x61C || code == 0x200E ||
         code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string text_escape(const Character& character) {
  if (character.code == '\n') return "\\n";
  if (character.code == '\t') return "\\t";
  const auto code = static_cast<std::uint32_t>(character.code);
  if (!character.is_valid || code < 0x80) return fmt::format("\\x{:02x}", code);
  return fmt::format("\\u{{{:x}}}", code);
}

std::string json_escape(const Character& character) {
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

std::string printable(std::string_view text) { return escaped(text, {}, text_escape); }

std::string printable_lines(std::string_view text) { return escaped(text, "\n\t", text_escape); }

std::string printable_json(std::string_view json) { return escaped(json, "\n\t", json_escape); }

}  // namespace mlenv
