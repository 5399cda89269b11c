#pragma once
// Text as bytes: ASCII alone is told apart, whatever the locale.
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_letter(char c) { return is_lower(c) || is_upper(c); }
constexpr bool is_alphanumeric(char c) { return is_letter(c) || is_digit(c); }

constexpr char to_lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }
std::string to_lower(std::string_view text);

/// Without blanks, tabs and line ends at either end.
std::string_view trim(std::string_view text);

/// The parts between separators, empty ones too: one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The text as a decimal number; nothing where more or something else is there, or it is too large.
template <class Value>
std::optional<Value> number_from(std::string_view text) {
  Value value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

/// What stands before the first line end.
inline std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

/// Pointers to each, and a null behind them, as exec wants it. They hold as long as the strings do.
std::vector<char*> c_strings(const std::vector<std::string>& strings);

}  // namespace mlenv
