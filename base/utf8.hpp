#pragma once
// UTF-8, as RFC 3629 has it: no surrogates, no longer form than needed. The only decoder.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mlenv {

/// Length of the well-formed sequence at `at`, which is in `text`; 0 where there is none.
std::size_t utf8_sequence(std::string_view text, std::size_t at);
/// Offset of the first byte that is not part of well-formed UTF-8, or npos.
std::size_t utf8_fault(std::string_view text);
/// Code points of well-formed UTF-8.
std::size_t utf8_length(std::string_view text);
/// The code point at `at`, which moves behind it. nullopt where no well-formed sequence begins
/// there: `at` moves by one byte.
std::optional<char32_t> take_character(std::string_view text, std::size_t& at);
/// A file's text as UTF-8 without its byte order mark; UTF-16 is told by that mark (as PowerShell
/// writes `pip freeze > requirements.txt`). What is damaged, or has no mark, stays as it is.
std::string decoded_text(std::string bytes);

}  // namespace mlenv
