#include "base/duration.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/text.hpp"

namespace mlenv {
namespace {

struct Unit {
  std::string_view name;
  double milliseconds;
};
constexpr std::array kUnits = {Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                               Unit{"s", 1000}, Unit{"ms", 1}};
constexpr double kLongestSpan = 100 * 366 * kUnits[0].milliseconds;
constexpr std::size_t kMostDigits = 18;

/// Takes `12` or `1.5` from the front.
std::optional<double> take_number(std::string_view& text) {
  std::size_t end = 0;
  std::size_t dots = 0;
  while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) {
    if (text[end] == '.') ++dots;
    ++end;
  }
  const std::string digits{text.substr(0, end)};
  if (digits.empty() || dots > 1 || digits.size() > kMostDigits) return std::nullopt;
  if (digits.front() == '.' || digits.back() == '.') return std::nullopt;
  text.remove_prefix(end);
  return std::stod(digits);
}

/// Takes a unit from the front; its place in the table.
std::optional<std::size_t> take_unit(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_lower(text[end])) ++end;
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    if (kUnits[i].name != text.substr(0, end)) continue;
    text.remove_prefix(end);
    return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr std::size_t kSeconds = 3;
  double sum = 0;
  std::size_t next = 0;  // the largest unit that may follow
  const std::string_view whole = text;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const bool first = text.size() == whole.size();
    const std::optional<double> number = take_number(text);
    if (!number) return std::nullopt;
    const std::optional<std::size_t> unit =
        first && text.empty() ? std::optional<std::size_t>(kSeconds) : take_unit(text);
    if (!unit || *unit < next) return std::nullopt;
    next = *unit + 1;
    sum += *number * kUnits.at(*unit).milliseconds;
    if (sum > kLongestSpan) return std::nullopt;
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::llround(sum)));
}

}  // namespace mlenv
