#include "recipes/init/poetry_versions.hpp"

#include <algorithm>
#include <charconv>
#include <compare>

#include <fmt/core.h>

#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kSigns = "<>=!~^";

/// The numbers that a version begins with: 1, 2, 3 of `1.2.3b1`.
std::vector<int> leading_numbers(std::string_view version) {
  std::vector<int> numbers;
  while (!version.empty()) {
    int number = 0;
    const auto [end, error] =
        std::from_chars(version.data(), version.data() + version.size(), number);
    if (error != std::errc{}) break;
    numbers.push_back(number);
    version.remove_prefix(static_cast<std::size_t>(end - version.data()));
    if (!version.starts_with('.')) break;
    version.remove_prefix(1);
  }
  return numbers;
}

/// The next version that `^` or `~` does not allow.
std::string first_beyond(const std::vector<int>& numbers, bool tilde) {
  // The number that goes up: the first that is not 0; for `~` the second.
  std::size_t up = tilde ? std::min<std::size_t>(1, numbers.size() - 1) : 0;
  while (!tilde && up + 1 < numbers.size() && numbers[up] == 0) ++up;
  std::vector<std::string> next;
  for (std::size_t i = 0; i < up; ++i) next.push_back(std::to_string(numbers[i]));
  next.push_back(std::to_string(numbers[up] + 1));
  return join(next, ".");
}

/// One condition, without blanks; nullopt: not understood.
std::optional<std::string> poetry_condition(std::string_view text) {
  const std::size_t start = std::min(text.find_first_not_of(kSigns), text.size());
  const std::string_view sign = text.substr(0, start);
  const std::string_view version = text.substr(start);
  if (version == "*") return "";
  const auto is_of_version = [](char c) {
    return is_alphanumeric(c) || std::string_view(".+*!-_").find(c) != std::string_view::npos;
  };
  if (version.empty() || !is_digit(version.front()) ||
      !std::all_of(version.begin(), version.end(), is_of_version)) {
    return std::nullopt;
  }
  if (sign.empty() || sign == "=") return fmt::format("=={}", version);
  if (sign != "^" && sign != "~") return std::string(text);
  std::string_view lower = version;
  while (lower.ends_with('*') || lower.ends_with('.')) lower.remove_suffix(1);
  const std::vector<int> numbers = leading_numbers(lower);
  if (numbers.empty()) return std::nullopt;
  return fmt::format(">={},<{}", lower, first_beyond(numbers, sign == "~"));
}

/// What commas and blanks stand between; `>= 1` is one.
std::vector<std::string> conditions(std::string_view text) {
  std::vector<std::string> all;
  bool goes_on = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(", \t"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (goes_on) {
      all.back() += word;
    } else {
      all.emplace_back(word);
    }
    goes_on = word.find_first_not_of(kSigns) == std::string_view::npos;
  }
  return all;
}

std::optional<std::string> one_alternative(std::string_view text) {
  std::vector<std::string> parts;
  for (const std::string& one : conditions(text)) {
    auto condition = poetry_condition(one);
    if (!condition) return std::nullopt;
    if (!condition->empty()) parts.push_back(*std::move(condition));
  }
  return join(parts, ",");
}

/// The bound of a set that `sign` begins, taken out of it; empty: it has none.
std::string take_bound(std::vector<std::string>& set, std::string_view sign) {
  const auto found = std::find_if(set.begin(), set.end(), [&](const std::string& one) {
    return one.starts_with(sign) && one.size() > sign.size() && one[sign.size()] != '=';
  });
  if (found == set.end()) return {};
  std::string version = found->substr(sign.size());
  set.erase(found);
  return version;
}

std::vector<std::string> conditions_of(const std::string& set) {
  std::vector<std::string> parts;
  for (const std::string_view one : split(set, ',')) parts.emplace_back(one);
  return parts;
}

/// `first` and `second` as one set; nullopt: more than a version lies between them.
std::optional<std::string> merged(const std::string& first, const std::string& second) {
  std::vector<std::string> lower = conditions_of(first);
  std::vector<std::string> upper = conditions_of(second);
  const std::string end = take_bound(lower, "<");
  std::string begin = take_bound(upper, ">");
  const bool hole = !begin.empty();
  if (!hole) begin = take_bound(upper, ">=");
  if (end.empty() || begin.empty() || !std::is_eq(compare_versions(end, begin))) {
    return std::nullopt;
  }
  if (hole) lower.push_back("!=" + begin);
  lower.insert(lower.end(), upper.begin(), upper.end());
  return join(lower, ",");
}

std::string python_condition(std::string_view part) {
  const std::size_t start = std::min(part.find_first_not_of(kSigns), part.size());
  const std::string_view sign = part.substr(0, start);
  std::string_view version = part.substr(start);
  constexpr std::string_view kAny = ".*";
  if (version.ends_with(kAny)) version.remove_suffix(kAny.size());
  const bool full = std::count(version.begin(), version.end(), '.') > 1;
  return fmt::format("python_{}version {} \"{}\"", full ? "full_" : "", sign, version);
}

}  // namespace

std::vector<std::string> poetry_alternatives(std::string_view text) {
  std::vector<std::string> all;
  while (true) {
    std::size_t size = 2;
    std::size_t bar = text.find("||");
    if (bar == std::string_view::npos) {
      bar = text.find('|');
      size = 1;
    }
    auto one = one_alternative(text.substr(0, bar));
    if (!one) return {};
    all.push_back(*std::move(one));
    if (bar == std::string_view::npos) return all;
    text.remove_prefix(bar + size);
  }
}

std::optional<std::string> poetry_specifier(std::string_view text) {
  std::vector<std::string> all = poetry_alternatives(text);
  if (all.empty()) return std::nullopt;
  std::string set = all.front();
  for (std::size_t i = 1; i < all.size(); ++i) {
    auto both = merged(set, all[i]);
    if (!both) return std::nullopt;
    set = *std::move(both);
  }
  return set;
}

std::string marker_of_poetry_python(std::string_view text) {
  std::vector<std::string> alternatives;
  for (const std::string& set : poetry_alternatives(text)) {
    if (set.empty()) return {};
    std::vector<std::string> conditions;
    for (const std::string& part : conditions_of(set)) conditions.push_back(python_condition(part));
    alternatives.push_back(join(conditions, " and "));
  }
  if (alternatives.size() < 2) return join(alternatives, "");
  for (std::string& one : alternatives) one = '(' + one + ')';
  return join(alternatives, " or ");
}

}  // namespace mlenv
